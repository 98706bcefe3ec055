"""A backend with a fault in it, which is ours and not the document's."""

from __future__ import annotations

from pdfpool_django.backends.local import LocalBackend


class FaultyBackend(LocalBackend):
    """Cannot tell its engine, which each result names."""

    def _engine(self) -> str:
        raise RuntimeError("the name of the engine is gone")
