"""``path("pdf/", include("pdfpool_django.async_urls"))``: `urls` for sites on an ASGI server."""

from __future__ import annotations

from django.urls import path

from pdfpool_django import async_views, views

app_name = "pdfpool"

urlpatterns = [
    path("", async_views.AsyncUploadView.as_view(), name="upload"),
    path("extract/", async_views.AsyncExtractView.as_view(), name="extract"),
    path("status/", views.status, name="status"),
    path("health/", views.health, name="health"),
]
