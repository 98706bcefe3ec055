"""A site one of whose views forks."""

from __future__ import annotations

from tests.server.settings import *  # noqa: F403

ROOT_URLCONF = "tests.server.forking_urls"
