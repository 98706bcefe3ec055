"""A site's own documents: what the recipes of the documentation are about."""

from __future__ import annotations

from django.db import models


class Report(models.Model):
    """A PDF that the site has kept."""

    file = models.FileField(upload_to="reports")
    text = models.TextField(default="", blank=True)

    class Meta:
        app_label = "shelf"

    def __str__(self) -> str:
        return f"report {self.pk}"
