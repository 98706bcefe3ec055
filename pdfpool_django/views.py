"""The extraction view, the page for people, and what tells how the pool is."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.shortcuts import render
from django.views import View
from django.views.decorators.cache import cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters

from pdfpool_django import callers, conf, extraction, http, runtime, streaming, uploads
from pdfpool_django.backends.base import Run
from pdfpool_django.errors import Forbidden, InternalError, NotAuthenticated, PdfPoolError
from pdfpool_django.forms import UploadForm
from pdfpool_django.model import Extraction
from pdfpool_django.signals import extraction_refused
from pdfpool_django.sources import Source
from pdfpool_django.streaming import NDJSON, AsyncEventLines, EventLines
from pdfpool_django.text import clean_line
from pdfpool_django.uploads import Upload

logger = logging.getLogger("pdfpool_django.views")
security_logger = logging.getLogger("django.security.csrf")

_TYPES = ["application/json", "text/plain", NDJSON]
_OTHER_PARAMETER = re.compile(r";(?!\s*q\s*=)[^;,]*", re.IGNORECASE)
_MAX_LOGGED = 500


class _CsrfCheck(CsrfViewMiddleware):
    """Django's own check, run when the view says so; tells the reason instead of a page."""

    def _reject(self, request: HttpRequest, reason: str) -> Any:
        # As Django does itself: to who runs the site, it may say what its proxy leaves out.
        shown = clean_line(f"{reason}: {request.path}", _MAX_LOGGED)
        extra = {"status_code": 403, "request": request}
        security_logger.warning("Forbidden: %s", shown, extra=extra)
        return reason


def _check_csrf(request: HttpRequest) -> None:
    def protected(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - it is only looked at
        return HttpResponse()

    check = _CsrfCheck(lambda _: HttpResponse())
    check.process_request(request)
    reason = check.process_view(request, protected, (), {})
    if reason is None:
        return
    if str(reason).startswith(("Origin", "Referer")):
        raise Forbidden(
            "The request does not come from a page of this site, as its Origin or Referer tells; "
            "load the page again, then send it from there."
        )
    raise Forbidden


# The view settles who asks, and how much, before a form is parsed; so the
# middlewares that would parse it, or answer with a page, are kept out. No
# transaction is held while a job waits.
_OUTERMOST: Any = [
    csrf_exempt,
    login_not_required,
    transaction.non_atomic_requests,
    sensitive_post_parameters("password"),
    cache_control(no_store=True),
]


class ExtractionView(View):
    """Reads the document that a request is about; what becomes of the result is a subclass's."""

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        view = super().as_view(**initkwargs)
        for decorate in _OUTERMOST:
            view = decorate(view)
        return view

    def get_source(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Source | None:  # noqa: ARG002
        """Return the document, or ``None`` where the request itself brings it.

        For views of documents that the site has: override it, look the
        document up, and check that this caller may read it. The request's
        body has not been read when this is called, nor its CSRF token checked.

        Raises:
            PdfPoolError: The request is refused, as with `Forbidden`.
            PermissionDenied: The same as `Forbidden`.
        """
        return None

    @contextlib.contextmanager
    def running(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Iterator[Run]:
        """Have the document read for the length of the block. Does not wait for the reading.

        Raises:
            PdfPoolError: The request was refused.
        """
        config = conf.load()
        with contextlib.ExitStack() as stack:
            caller = None
            try:
                caller = _caller_of(request)
                count = callers.open_requests()
                stack.enter_context(count.one(caller, config.caller_requests))
                upload = self._receive(request, config.max_upload, *args, **kwargs)
            except PdfPoolError as error:
                extraction_refused.send_robust(Extraction, caller=caller, error=error)
                raise
            run = extraction.submit(
                upload.document, caller=caller, pages=upload.pages, password=upload.password
            )
            yield stack.enter_context(run)

    def _receive(self, request: HttpRequest, limit: int, *args: Any, **kwargs: Any) -> Upload:
        try:
            source = self.get_source(request, *args, **kwargs)
        except PermissionDenied as error:
            raise Forbidden("You may not read this document.") from error
        if source is None:
            uploads.check_head(request, limit)
        uploads.watch(request, limit if source is None else None)
        if not callers.authenticates_by_header():
            with uploads.parsing(request):
                _check_csrf(request)
        if source is None:
            return uploads.receive(request, limit)
        return uploads.receive_options(request, source)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return self.answer(request, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - every one has its response
            return self.respond_to(request, error)

    def answer(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Return the response to a document that is read.

        Raises:
            Exception: It is refused, or cannot be read; see `respond_to`.
        """
        with self.running(request, *args, **kwargs) as run:
            result = run.result()
        return self.respond(request, result)

    def respond(self, request: HttpRequest, result: Extraction) -> HttpResponseBase:
        """Return the response to a result."""
        raise NotImplementedError

    def respond_to(self, request: HttpRequest, error: Exception) -> HttpResponseBase:
        """Return the response to what went wrong; what is no fault is raised on."""
        if isinstance(error, Http404):
            raise error
        if isinstance(error, PdfPoolError):
            return self.respond_to_error(request, error)
        fault = InternalError()
        logger.error("an extraction request failed, reference %s", fault.reference, exc_info=error)
        return self.respond_to_error(request, fault)

    def respond_to_error(self, request: HttpRequest, error: PdfPoolError) -> HttpResponseBase:
        """Return the response to an error."""
        raise NotImplementedError


class ExtractView(ExtractionView):
    """``POST`` a document, get its text: as JSON, or as plain text where that is asked for.

    A subclass with a `get_source` of its own reads documents that the site
    has. It may name ``get`` among its `http_method_names`, too.
    """

    http_method_names = ["post", "options"]  # noqa: RUF012 - as Django declares it

    get = ExtractionView.post

    def answer(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if self.preferred_type(request) == NDJSON:
            return self.stream(request, *args, **kwargs)
        return super().answer(request, *args, **kwargs)

    def stream(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Return the response that sends a line of JSON for each event as it happens."""
        with contextlib.ExitStack() as stack:
            run = stack.enter_context(self.running(request, *args, **kwargs))
            lines = EventLines(run)
            lines.begin()
            response = self.streamed(lines)
            lines.leave = stack.pop_all().close
            return response

    def streamed(self, lines: EventLines | AsyncEventLines) -> HttpResponseBase:
        response = streaming.response(lines)
        response["Vary"] = "Accept"
        return response

    def preferred_type(self, request: HttpRequest) -> str | None:
        """Return which of our media types the client likes best; ``None`` for none of them."""
        plain = HttpRequest()
        # Whatever they say of a type, like its charset, is no matter of which is liked best.
        plain.META["HTTP_ACCEPT"] = _OTHER_PARAMETER.sub("", request.headers.get("Accept", "*/*"))
        return plain.get_preferred_type(_TYPES)

    def respond(self, request: HttpRequest, result: Extraction) -> HttpResponseBase:
        if self.preferred_type(request) == "text/plain":
            response = HttpResponse(result.text, content_type="text/plain; charset=utf-8")
            response["Pdfpool-Complete"] = "true" if result.complete else "false"
        else:
            said = http.localized(result).as_dict()
            response = JsonResponse(said, json_dumps_params={"ensure_ascii": False})
        response["Vary"] = "Accept"
        return response

    def respond_to_error(self, request: HttpRequest, error: PdfPoolError) -> HttpResponseBase:  # noqa: ARG002
        return http.problem_response(error)


class UploadView(ExtractionView):
    """A page for people: a form that answers with a page of text."""

    http_method_names = ["get", "head", "post", "options"]  # noqa: RUF012 - as Django declares it

    def get(self, request: HttpRequest) -> HttpResponseBase:
        try:
            callers.caller_of(request)
        except NotAuthenticated:
            return redirect_to_login(request.get_full_path())
        return self._page(request, {"form": UploadForm()})

    def respond(self, request: HttpRequest, result: Extraction) -> HttpResponseBase:
        context = {"form": UploadForm(), "extraction": http.localized(result)}
        return self._page(request, context)

    def respond_to_error(self, request: HttpRequest, error: PdfPoolError) -> HttpResponseBase:
        if isinstance(error, NotAuthenticated):
            return redirect_to_login(request.get_full_path())
        shown = {"title": http.title_of(error), "detail": http.detail_of(error)}
        context = {"form": UploadForm(), "problem": shown}
        response = self._page(request, context, http.status_of(error))
        return http.with_error_headers(response, error)

    def _page(
        self, request: HttpRequest, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        return render(request, "pdfpool_django/upload.html", context, status=status)


def _caller_of(request: HttpRequest) -> str:
    try:
        return callers.caller_of(request)
    except PermissionDenied as error:
        raise Forbidden("You may not have documents read here.") from error


@login_not_required
@cache_control(no_store=True)
def health(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Answer 200 while requests can be served, busy or not; else 503, and why."""
    state = runtime.probe()
    body = {
        "available": state.available,
        "reason": state.reason,
        "slots": state.slots,
        "running": state.running,
        "queue": state.queue,
        "queued": state.queued,
    }
    return JsonResponse(body, status=200 if state.available else 503)


@login_not_required
@cache_control(no_store=True)
def status(request: HttpRequest) -> HttpResponse:
    """Tell staff how the pool is: as JSON, or as a page where a browser asks."""
    page = request.get_preferred_type(["application/json", "text/html"]) == "text/html"
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        if page:
            return redirect_to_login(request.get_full_path())
        return http.problem_response(NotAuthenticated())
    if not user.is_staff:
        return http.problem_response(Forbidden("Only staff may see the pool's state."))
    state = runtime.state()
    if page:
        response = render(request, "pdfpool_django/status.html", {"state": state})
    else:
        response = JsonResponse(state.as_dict())
    response["Vary"] = "Accept"
    return response
