"""The views for ASGI servers, where many may wait."""

from __future__ import annotations

from tests.server.async_settings import *  # noqa: F403
from tests.server.settings import PDFPOOL as SCRIPTED

PDFPOOL = {
    **SCRIPTED,
    "QUEUE": 250,
    "WAIT": 60,
    "CALLER": "tests.server.callers.in_many_places",
    "CALLER_REQUESTS": 250,
}
