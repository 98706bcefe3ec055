"""The example site with the views for ASGI servers."""

from __future__ import annotations

from django.urls import include, path

from example_project.urls import urlpatterns as example_urlpatterns

urlpatterns = [
    path("pdf/", include("pdfpool_django.async_urls")),
    *(each for each in example_urlpatterns if str(each.pattern) != "pdf/"),
]
