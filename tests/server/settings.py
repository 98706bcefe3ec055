"""The example site with an engine whose documents are scripts, and a short queue."""

from __future__ import annotations

from example_project.settings import *  # noqa: F403

PDFPOOL = {"ENGINE": "tests.engines.scripted", "SLOTS": 1, "QUEUE": 1, "WAIT": 30, "DEADLINE": 60}
