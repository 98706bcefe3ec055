"""What tests have left in this process, and whether it will change."""

from __future__ import annotations

from pdfpool_django import runtime
from pdfpool_django.documents import sandboxes
from tests.sandbox.helpers import eventually, made


def await_rest() -> None:
    """Wait for the next standby of every sandbox that other tests have left in this process.

    Else its descriptors come while a test looks at what there is.
    """
    of_backends = [getattr(each, "_sandbox", None) for each in runtime._backends.values()]
    for sandbox in [*made, *of_backends, *sandboxes._sandboxes.values()]:
        launcher = None if sandbox is None else sandbox._launcher
        if launcher is not None:
            wanted = sandbox._config.standbys
            eventually(
                lambda launcher=launcher, wanted=wanted: (
                    not launcher.alive or len(launcher.standbys) >= wanted
                ),
                "a sandbox at rest",
            )
