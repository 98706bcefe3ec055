"""The backends that there are, each put to what every backend must do."""

from __future__ import annotations

import hashlib

from pdfpool_django import errors
from pdfpool_django.backends.base import BackendConfig
from pdfpool_django.backends.local import LocalBackend
from pdfpool_django.testing import HANGS, Answer, CannedBackend
from tests.site.backend_conformance import TEXTS, Conformance
from tests.site.helpers import hanging, script


class TestLocalBackend(Conformance):
    READABLE = script("readable", pages=3)
    DAMAGED = script("damaged", pages=3, at={2: "segfaults"})
    HANGING = hanging("hanging")

    def make(self, config: BackendConfig) -> LocalBackend:
        return LocalBackend(config)


class TestCannedBackend(Conformance):
    READABLE = b"%PDF-1.7 readable"
    DAMAGED = b"%PDF-1.7 damaged"
    HANGING = b"%PDF-1.7 hanging"

    def make(self, config: BackendConfig) -> CannedBackend:
        answers: dict[bytes, Answer] = {
            self.READABLE: TEXTS,
            self.DAMAGED: [TEXTS[0], errors.Crashed(reason="SIGSEGV"), TEXTS[2]],
            self.HANGING: HANGS,
        }
        by_sha256 = {hashlib.sha256(data).hexdigest(): each for data, each in answers.items()}
        return CannedBackend(config, by_sha256)
