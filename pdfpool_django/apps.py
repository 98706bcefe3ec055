"""The application's entry in ``INSTALLED_APPS``. It registers checks, and starts nothing."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import register


class PdfPoolConfig(AppConfig):
    """Text from PDFs, read safely."""

    name = "pdfpool_django"
    verbose_name = "PDF pool"

    def ready(self) -> None:
        from pdfpool_django.checks import check_deployment, check_settings

        register(check_settings, "pdfpool")
        register(check_deployment, "pdfpool", deploy=True)
