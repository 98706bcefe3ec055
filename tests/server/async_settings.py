"""The site of the other servers' tests, with the views for ASGI servers."""

from __future__ import annotations

from tests.server.settings import *  # noqa: F403

ROOT_URLCONF = "tests.server.async_urls"
