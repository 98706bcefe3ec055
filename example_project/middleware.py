"""What the example site adds to every answer."""

from __future__ import annotations

from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@sync_and_async_middleware
def content_security_policy(get_response: Any) -> Any:
    """Allow what the site itself serves, and nothing inline."""

    def allowed(response: HttpResponseBase) -> HttpResponseBase:
        response["Content-Security-Policy"] = POLICY
        return response

    def answer(request: HttpRequest) -> HttpResponseBase:
        return allowed(get_response(request))

    async def aanswer(request: HttpRequest) -> HttpResponseBase:
        return allowed(await get_response(request))

    return aanswer if iscoroutinefunction(get_response) else answer
