"""The example site with an engine whose documents are scripts, and a short queue."""

from __future__ import annotations

from example_project.settings import *  # noqa: F403

PDFPOOL = {"ENGINE": "tests.engines.scripted", "SLOTS": 1, "QUEUE": 1, "WAIT": 30, "DEADLINE": 60}
# Logging in is not what takes the time. A database is made under the settings it is served with.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
