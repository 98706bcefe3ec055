"""Callers of which one user can be many."""

from __future__ import annotations

from django.http import HttpRequest
from django.views.decorators.csrf import csrf_exempt

from pdfpool_django.callers import authenticated_user


@csrf_exempt
def in_many_places(request: HttpRequest) -> str | None:
    """Name a user who has logged in, and the place that the header names."""
    user = authenticated_user(request)
    return user and f"{user} {request.headers.get('X-Place', '')}"
