from __future__ import annotations

from django.apps import AppConfig


class ShelfConfig(AppConfig):
    name = "tests.shelf"
    label = "shelf"
    default_auto_field = "django.db.models.BigAutoField"
