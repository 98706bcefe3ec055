"""The example site: the application at ``/pdf/``, and Django's login."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.contrib.staticfiles.views import serve
from django.urls import include, path, re_path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="pdfpool:upload"), name="home"),
    path("pdf/", include("pdfpool_django.urls")),
    path("accounts/login/", LoginView.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    # A site on the Internet has its web server do this.
    re_path(r"^static/(?P<path>.*)$", serve, {"insecure": True}),
]
