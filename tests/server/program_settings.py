"""A site for programs, which takes one document at a time and lets none wait."""

from __future__ import annotations

from tests.server.settings import *  # noqa: F403
from tests.server.settings import PDFPOOL as SCRIPTED

PDFPOOL = {
    **SCRIPTED,
    "SLOTS": 1,
    "QUEUE": 0,
    "CALLER": "tests.server.api_keys.by_key",
    "MAX_UPLOAD": 2 * 1024 * 1024,
}
