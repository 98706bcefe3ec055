"""Middlewares such as sites have, which look into a request before any view does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

seen: list[Any] = []
"""What each has found."""

Next = Callable[[HttpRequest], HttpResponse]


def reads_post(get_response: Next) -> Next:
    """Look for a field of the form."""

    def middleware(request: HttpRequest) -> HttpResponse:
        seen.append(request.POST.get("pages"))
        return get_response(request)

    return middleware


def reads_files(get_response: Next) -> Next:
    """Note the names of files."""

    def middleware(request: HttpRequest) -> HttpResponse:
        seen.append(sorted(request.FILES))
        return get_response(request)

    return middleware


def reads_body(get_response: Next) -> Next:
    """Note how long the body is."""

    def middleware(request: HttpRequest) -> HttpResponse:
        seen.append(len(request.body))
        return get_response(request)

    return middleware
