"""The example site without a database that could be reached, and with an engine to choose."""

from __future__ import annotations

import os

from example_project.settings import *  # noqa: F403

DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "/no/such/folder/db.sqlite3"}
}
PDFPOOL = {"ENGINE": os.environ.get("ENGINE", "pypdf")}
