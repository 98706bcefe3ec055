"""Callers of other kinds than users who have logged in."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import HttpRequest
from django.views.decorators.csrf import csrf_exempt


def by_header(request: HttpRequest) -> str | None:
    """Name whoever the header names."""
    return request.headers.get("X-Caller")


@csrf_exempt
def by_token(request: HttpRequest) -> str | None:
    """Name the bearer of a token, which no other site can make a browser send."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token if scheme == "Bearer" else None


def outside_transactions(request: HttpRequest) -> str | None:
    """Name a caller only where no transaction is held."""
    return None if connection.in_atomic_block else "somebody"


def a_number(request: HttpRequest) -> int:
    return 7


def fails(request: HttpRequest) -> str | None:
    raise RuntimeError("the directory of users is gone")


def refuses(request: HttpRequest) -> str | None:
    raise PermissionDenied
