"""Every way an extraction can fail: a class per code, with one base."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, TypedDict, cast

from pdfpool_django.text import clean

_MAX_TEMPLATE = 1000
_MAX_PARAM = 2000
# Without a width or precision, by which four bytes of template fill the memory.
_PLACEHOLDER = re.compile(r"%(?:%|\(\w+\)[sdg])", re.ASCII)


class ErrorDict(TypedDict):
    """What a result says of an error: its code and a sentence."""

    code: str
    detail: str


class ErrorNote(dict[str, str]):
    """An `ErrorDict` that its reader may still be told in another language."""

    template: str | None = None
    """The sentence without its parameters; ``None`` where it is not known."""
    params: Mapping[str, Any] = MappingProxyType({})


def error_note(code: str, template: str, params: Mapping[str, Any]) -> ErrorDict:
    """Return an error as results carry it, in English, with what it takes to translate it."""
    note = ErrorNote(code=code, detail=template % params)
    note.template, note.params = template, params
    return cast(ErrorDict, note)


class PdfPoolError(Exception):
    """An extraction that failed, or was refused.

    An error is a `code`, a message template and `params` for it, so that it
    can travel as data and be translated where it is shown.

    Args:
        template: The sentence, with ``%(name)s`` for each parameter. Without
            it, the class's own, which says less where there are no parameters.
        retry_after: Seconds after which trying again may help, or ``None``.
        **params: Plain values that the template names.
    """

    code: ClassVar[str] = "internal_error"
    default_template: ClassVar[str] = "The extraction failed."
    bare_template: ClassVar[str | None] = None
    """The sentence of one without parameters, where the default one has some."""
    retryable: ClassVar[bool] = False

    template: str
    params: dict[str, Any]
    retry_after: float | None

    def __init__(
        self, template: str | None = None, /, *, retry_after: float | None = None, **params: Any
    ) -> None:
        super().__init__(*(() if template is None else (template,)))
        if template is None:
            template = (not params and self.bare_template) or self.default_template
        self.template = template
        self.params = params
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.template % self.params

    def as_error(self) -> ErrorDict:
        """Return the error as results carry it, in English."""
        return error_note(self.code, self.template, self.params)

    def as_data(self) -> dict[str, Any]:
        """Return the error as JSON-safe data; `from_data` turns it back."""
        return {
            "code": self.code,
            "template": self.template,
            "params": self.params,
            "retry_after": self.retry_after,
        }


class Busy(PdfPoolError):
    code = "busy"
    default_template = "All extraction slots are taken; try again in a moment."
    retryable = True


class CallerBusy(PdfPoolError):
    code = "caller_busy"
    default_template = "You already have an extraction running; wait for it to end, then try again."
    retryable = True


class Unavailable(PdfPoolError):
    code = "unavailable"
    default_template = "No document can be read at the moment; try again later."
    retryable = True


class NotAuthenticated(PdfPoolError):
    code = "not_authenticated"
    default_template = "Log in first, then send the request again."


class Forbidden(PdfPoolError):
    code = "forbidden"
    default_template = (
        "The request's CSRF token is missing or wrong; load the page again, then send it."
    )


class InvalidRequest(PdfPoolError):
    code = "invalid_request"
    default_template = "The request cannot be understood; mend it, then send it again."


class FileTooLarge(PdfPoolError):
    code = "file_too_large"
    default_template = "The file is larger than the %(limit)d bytes allowed; send a smaller one."
    bare_template = "The file is larger than allowed; send a smaller one."


class NotAPdf(PdfPoolError):
    code = "not_a_pdf"
    default_template = (
        "The file is not a PDF: “%%PDF-” is not in its first 1024 bytes. Send a PDF file."
    )


class InvalidPdf(PdfPoolError):
    code = "invalid_pdf"
    default_template = (
        "The file is a broken PDF (%(reason)s). Save it again with the program "
        "that made it, then send the new file."
    )
    bare_template = (
        "The file is a broken PDF. Save it again with the program "
        "that made it, then send the new file."
    )


class PasswordRequired(PdfPoolError):
    code = "password_required"
    default_template = "The file is locked; send its password along."


class WrongPassword(PdfPoolError):
    code = "wrong_password"
    default_template = "The password does not open the file; check it, then try again."


class Unsupported(PdfPoolError):
    code = "unsupported"
    default_template = (
        "The file needs a feature that cannot be read here (%(reason)s). Save it again "
        "without that, then send the new file."
    )
    bare_template = (
        "The file needs a feature that cannot be read here. Save it again "
        "without that, then send the new file."
    )


class PageOutOfRange(PdfPoolError):
    code = "page_out_of_range"
    default_template = (
        "Page %(page)d does not exist: the file has %(page_count)d pages. Ask for fewer."
    )
    bare_template = "The file has no such page. Ask for fewer."


class TooManyPages(PdfPoolError):
    code = "too_many_pages"
    default_template = (
        "The file has %(page_count)d pages, more than the %(limit)d allowed; "
        "split it and send the parts."
    )
    bare_template = "The file has more pages than allowed; split it and send the parts."


class OutputTooLarge(PdfPoolError):
    code = "output_too_large"
    default_template = (
        "The text is larger than the %(limit)d bytes allowed; ask for fewer pages at a time."
    )
    bare_template = "The text is larger than allowed; ask for fewer pages at a time."


class MemoryExceeded(PdfPoolError):
    code = "memory_exceeded"
    default_template = (
        "Reading took more memory than is allowed. Save the file again in a simpler form, "
        "or leave out the page that needs it."
    )


class Crashed(PdfPoolError):
    code = "crashed"
    default_template = (
        "The file made the program that reads it fail (%(reason)s). Save it again with "
        "another program, then send the new file."
    )
    bare_template = (
        "The file made the program that reads it fail. Save it again with "
        "another program, then send the new file."
    )


class DeadlineExceeded(PdfPoolError):
    code = "deadline_exceeded"
    default_template = (
        "Reading took longer than the %(seconds)g seconds allowed; ask for fewer pages at a time."
    )
    bare_template = "Reading took longer than allowed; ask for fewer pages at a time."


class Closed(PdfPoolError):
    code = "closed"
    default_template = "The document is closed; open it again."


class InvalidPattern(PdfPoolError):
    code = "invalid_pattern"
    default_template = "The pattern cannot be used (%(reason)s); mend it, then search again."
    bare_template = "The pattern cannot be used; mend it, then search again."


class InternalError(PdfPoolError):
    """A fault of ours. Log it where it is met, with the error's `reference`, which the answer has.

    Args:
        template: As for every error.
        retry_after: As for every error.
        **params: As for every error; a new ``reference`` unless one is given.
    """

    code = "internal_error"
    default_template = (
        "Something went wrong on our side. The fault has been logged as %(reference)s; "
        "name it when you report this."
    )

    def __init__(
        self, template: str | None = None, /, *, retry_after: float | None = None, **params: Any
    ) -> None:
        params.setdefault("reference", secrets.token_hex(4))
        super().__init__(template, retry_after=retry_after, **params)

    @property
    def reference(self) -> str:
        """Eight hexadecimal digits by which the log entry is found."""
        return str(self.params["reference"])


ERROR_CLASSES: dict[str, type[PdfPoolError]] = {
    cls.code: cls for cls in PdfPoolError.__subclasses__()
}


def from_data(data: dict[str, Any]) -> PdfPoolError:
    """Return the error that `PdfPoolError.as_data` described.

    The data may come from a child: its sentence is bounded, and can be said.

    Raises:
        KeyError: The data is incomplete, or its code is not a known one.
        TypeError: A part of it is of the wrong type.
        ValueError: Its sentence is none.
    """
    cls = ERROR_CLASSES[data["code"]]
    template, retry_after, params = data["template"], data["retry_after"], data["params"]
    if not isinstance(template, str) or not isinstance(params, dict):
        raise TypeError("the template is no text, or the parameters are no mapping")
    _check_template(template)
    plain = {name: _plain(value) for name, value in params.items()}
    error = cls(template, retry_after=_plain(retry_after), **plain)
    try:
        str(error)
    except OverflowError as cause:
        raise ValueError("a number is too large for its sentence") from cause
    return error


def _check_template(template: str) -> None:
    if len(template) > _MAX_TEMPLATE or not template.isprintable():
        raise ValueError("a template is too long, or not printable")
    if "%" in _PLACEHOLDER.sub("", template):
        raise ValueError("a template has a placeholder of an unknown kind")


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value[:_MAX_PARAM])
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise TypeError(f"a parameter of the type {type(value).__name__}")
