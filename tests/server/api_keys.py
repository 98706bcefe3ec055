"""Callers who come with a key of an API: what the documentation shows to sites."""

from __future__ import annotations

from django.http import HttpRequest
from django.views.decorators.csrf import csrf_exempt

KEYS = {"key-of-a": "a", "key-of-b": "b"}


@csrf_exempt
def by_key(request: HttpRequest) -> str | None:
    """Name the program whose key the request shows, in one of two usual ways."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    key = token if scheme == "Bearer" else request.headers.get("X-API-Key", "")
    name = KEYS.get(key)
    return None if name is None else f"program:{name}"
