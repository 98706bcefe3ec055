"""The example site as it is, where people need not wait to log in."""

from __future__ import annotations

from tests.server.settings import *  # noqa: F403

PDFPOOL: dict[str, object] = {}
