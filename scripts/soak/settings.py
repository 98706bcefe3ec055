"""The example site with small limits, so that hostile files meet them soon."""

from __future__ import annotations

from example_project.settings import *  # noqa: F403

MAX_UPLOAD = 512 * 1024

PDFPOOL = {
    "SLOTS": 2,
    "QUEUE": 6,
    "WAIT": 3,
    "DEADLINE": 4,
    "PAGE_DEADLINE": 2,
    "MEMORY": 192 * 1024 * 1024,
    "MAX_UPLOAD": MAX_UPLOAD,
    "MAX_PAGES": 500,
    "MAX_OUTPUT": 4 * 1024 * 1024,
}
# So that some uploads go to temporary files, and some do not.
FILE_UPLOAD_MAX_MEMORY_SIZE = 32 * 1024
# Logging in is not what takes the time.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
