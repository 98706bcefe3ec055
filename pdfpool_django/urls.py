"""``path("pdf/", include("pdfpool_django.urls"))``."""

from __future__ import annotations

from django.urls import path

from pdfpool_django import views

app_name = "pdfpool"

urlpatterns = [
    path("", views.UploadView.as_view(), name="upload"),
    path("extract/", views.ExtractView.as_view(), name="extract"),
    path("status/", views.status, name="status"),
    path("health/", views.health, name="health"),
]
