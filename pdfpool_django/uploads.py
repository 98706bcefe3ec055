"""Taking in an uploaded document: counted and hashed while it comes, and bounded."""

from __future__ import annotations

import contextlib
import hashlib
import io
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import (
    FileUploadHandler,
    MemoryFileUploadHandler,
    StopUpload,
    TemporaryFileUploadHandler,
)
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.http.request import RawPostDataException, UnreadablePostError
from django.utils.datastructures import ImmutableList

from pdfpool_django import conf, sources
from pdfpool_django.errors import FileTooLarge, Forbidden, InvalidRequest, PdfPoolError
from pdfpool_django.model import PageSelection
from pdfpool_django.sandbox import descriptors
from pdfpool_django.sandbox.descriptors import Descriptor
from pdfpool_django.sources import Source

FILE_FIELD = "file"
PASSWORD_HEADER = "Pdfpool-Password"  # noqa: S105 - a name, not a secret
RAW_TYPE = "application/pdf"
MULTIPART_TYPE = "multipart/form-data"

_FIELDS = {"pages", "password", "csrfmiddlewaretoken"}
_QUERY = {"pages"}
_CHUNK = 64 * 1024
_FORM_OVERHEAD = 64 * 1024
_MAX_NAME = 60


@dataclass(frozen=True)
class Upload:
    """What a request asks for."""

    document: Descriptor
    pages: PageSelection | None = None
    password: str | None = field(default=None, repr=False)


def check_head(request: HttpRequest, limit: int) -> None:
    """Refuse a body of no type of ours, or too long by its own account, before it is read.

    Raises:
        InvalidRequest: It is of another type.
        FileTooLarge: It announces itself as too long.
    """
    if request.content_type not in (RAW_TYPE, MULTIPART_TYPE):
        raise InvalidRequest(
            "The request has no file; send one as the form field “%(field)s”, "
            "or as the body with the type %(type)s.",
            field=FILE_FIELD,
            type=RAW_TYPE,
        )
    length = _content_length(request)
    if length is None:
        _check_chunked(request)
        return
    allowance = 0 if request.content_type == RAW_TYPE else _FORM_OVERHEAD
    if length > limit + allowance:
        raise FileTooLarge(limit=limit)


def _check_chunked(request: HttpRequest) -> None:
    """Refuse a body in chunks (RFC 9112, 7.1) where nobody says where it ends.

    Django takes a form without a length for an empty one.
    """
    if "chunked" not in request.headers.get("Transfer-Encoding", "").lower():
        return
    if request.content_type == MULTIPART_TYPE:
        raise InvalidRequest(
            "A form cannot be sent in chunks; send it with its Content-Length, "
            "or send the file alone as the body with the type %(type)s.",
            type=RAW_TYPE,
        )
    if not (_is_spooled(request) or request.META.get("wsgi.input_terminated")):
        raise InvalidRequest(
            "This server takes no body in chunks; send the file with its Content-Length."
        )


def watch(request: HttpRequest, limit: int | None) -> None:
    """Have the files of a form counted and hashed when it is parsed.

    Where one of the site's middlewares has had it parsed already, it is too
    late for that: what it has brought is measured afterwards.

    Args:
        request: The request, whose body has not been read.
        limit: Bytes that a file may have; ``None`` where there may be none.
    """
    handlers = request.upload_handlers
    if not isinstance(handlers, ImmutableList):
        # Only Django's own; one of the site's may do more.
        unnamed = [
            _Unnamed(request) if type(each) is TemporaryFileUploadHandler else each
            for each in handlers
        ]
        handlers[:] = [_Watch(request, limit), *unnamed]


@contextlib.contextmanager
def parsing(request: HttpRequest) -> Iterator[None]:
    """Say what is wrong with a form that is parsed in the block, by whomever.

    Nothing is kept of one that is not taken.

    Raises:
        PdfPoolError: It is broken, or was stopped for what it brings.
    """
    try:
        with _told(request):
            yield
    except BaseException:
        _give_up(request)
        raise


def _give_up(request: HttpRequest) -> None:
    """Have the upload handlers remove what they keep: Django leaves what is not complete."""
    watcher = _watcher(request)
    if watcher is not None and watcher.has_seen_a_file:
        for handler in request.upload_handlers:
            handler.upload_interrupted()


@contextlib.contextmanager
def _told(request: HttpRequest) -> Iterator[None]:
    try:
        yield
    except (MultiPartParserError, RawPostDataException, UnreadablePostError) as error:
        raise InvalidRequest("The upload is broken or stopped early; send it again.") from error
    except (RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent) as error:
        raise InvalidRequest(
            "The form has more fields, or longer ones, than a form may have; "
            "send the file and its options only."
        ) from error
    except Forbidden as error:
        # A token that comes after the file is not there when the file was too much.
        refused = _refused(request)
        if refused is None:
            raise
        raise refused from error
    refused = _refused(request)
    if refused is not None:
        raise refused


def _watcher(request: HttpRequest) -> _Watch | None:
    return next((each for each in request.upload_handlers if isinstance(each, _Watch)), None)


def _refused(request: HttpRequest) -> PdfPoolError | None:
    watcher = _watcher(request)
    return None if watcher is None else watcher.refused


def receive(request: HttpRequest, limit: int) -> Upload:
    """Take in the document and the options of a request.

    Raises:
        PdfPoolError: There is none, or more than one, or it is too large; an
            option is unknown or wrong.
    """
    _check_names(request.GET, _QUERY)
    if request.content_type == RAW_TYPE:
        options: Mapping[str, Any] = request.GET
        pages = PageSelection.parse(options.get("pages"))
        return Upload(_receive_raw(request, limit), pages, _password(request, {}))
    return _receive_form(request, limit)


def receive_options(request: HttpRequest, source: Source) -> Upload:
    """Take in the options of a request about a document that the site has.

    Raises:
        PdfPoolError: An option is unknown or wrong.
        OSError: The document cannot be read.
    """
    _check_names(request.GET, _QUERY)
    with parsing(request):
        fields, files = request.POST, request.FILES
    if files:
        raise _takes_no_file()
    _check_names(fields, _FIELDS)
    pages = PageSelection.parse(fields.get("pages") or request.GET.get("pages"))
    return Upload(sources.describe(source), pages, _password(request, fields))


def _check_names(given: Mapping[str, Any], known: set[str]) -> None:
    if "password" in given and "password" not in known:
        raise InvalidRequest(
            "A password must not be in the address, which servers log; send it as the form "
            "field “password” or the header %(header)s.",
            header=PASSWORD_HEADER,
        )
    for name in given:
        if name not in known:
            raise InvalidRequest(
                "There is no option “%(name)s”; the options are pages and password.",
                name=name[:_MAX_NAME],
            )


def _password(request: HttpRequest, fields: Mapping[str, Any]) -> str | None:
    password = fields.get("password") or request.headers.get(PASSWORD_HEADER)
    return password or None


def _receive_form(request: HttpRequest, limit: int) -> Upload:
    with parsing(request):
        fields, files = request.POST, request.FILES
    _check_names(fields, _FIELDS)
    pages = PageSelection.parse(fields.get("pages") or request.GET.get("pages"))
    file = _only_file(request, files)
    if file.size is not None and file.size > limit:
        raise FileTooLarge(limit=limit)
    document = sources.from_file(file, _known_sha256(request))
    file.close()
    if document.size > limit:  # a handler of the site's has made it larger, and not told
        document.close()
        raise FileTooLarge(limit=limit)
    return Upload(document, pages, _password(request, fields))


def _known_sha256(request: HttpRequest) -> str | None:
    """Return the hash of the form's file, unless a handler of the site's may have changed it."""
    known = (_Watch, _Unnamed, MemoryFileUploadHandler)
    if any(type(handler) not in known for handler in request.upload_handlers):
        return None
    watcher = _watcher(request)
    return None if watcher is None else watcher.sha256


def _takes_no_file() -> InvalidRequest:
    return InvalidRequest("This address takes no file; send the options only.")


def _not_kept() -> InvalidRequest:
    return InvalidRequest(
        "The file was not taken: it did not arrive whole, or this site keeps no such file; "
        "send it again, or a smaller one."
    )


def _not_named(others: str) -> InvalidRequest:
    if not others:
        return InvalidRequest(
            "The form has no file named “%(field)s”; choose one and send it again.",
            field=FILE_FIELD,
        )
    return InvalidRequest(
        "The form has no file named “%(field)s” but “%(other)s”; choose one and send it again.",
        field=FILE_FIELD,
        other=others[:_MAX_NAME],
    )


def _only_file(request: HttpRequest, files: Any) -> UploadedFile[bytes]:
    found = files.getlist(FILE_FIELD)
    watcher = _watcher(request)
    if not files and watcher is not None and watcher.has_seen_a_file:
        raise _not_kept()
    if not found or len(files) > 1:
        raise _not_named(", ".join(sorted(set(files) - {FILE_FIELD})))
    if len(found) > 1:
        raise InvalidRequest("The form has more than one file; send them one by one.")
    file: UploadedFile[bytes] = found[0]
    return file


class _Watch(FileUploadHandler):
    """Counts and hashes the file of a form, and stops what is too much; keeps nothing itself."""

    chunk_size = _CHUNK

    def __init__(self, request: HttpRequest, limit: int | None) -> None:
        super().__init__(request)
        self._limit = limit
        self._count = 0
        self._files = 0
        self._whole = False
        self._digest = hashlib.sha256()
        self.refused: PdfPoolError | None = None

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    @property
    def has_seen_a_file(self) -> bool:
        return self._files > 0

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._files += 1
        if self._limit is None:
            self._refuse(_takes_no_file())
        if self._files > 1:
            self._refuse(InvalidRequest("The form has more than one file; send them one by one."))

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:  # noqa: ARG002
        self._count += len(raw_data)
        if self._limit is not None and self._count > self._limit:
            self._refuse(FileTooLarge(limit=self._limit))
        self._digest.update(raw_data)
        return raw_data

    def file_complete(self, file_size: int) -> None:  # noqa: ARG002
        self._whole = True

    def upload_complete(self) -> None:
        # Another handler has skipped the file, or stopped the form; or its end never came.
        if self._files and not self._whole and self.refused is None:
            self.refused = _not_kept()

    def _refuse(self, error: PdfPoolError) -> None:
        self.refused = error
        raise StopUpload(connection_reset=True)


class _Unnamed(TemporaryFileUploadHandler):
    """Django's own, but for the name of its file: a process that is killed leaves none behind."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        FileUploadHandler.new_file(self, *args, **kwargs)
        self.file = UploadedFile(  # type: ignore[assignment]
            tempfile.TemporaryFile(dir=conf.upload_directory()),  # noqa: SIM115
            self.file_name,
            self.content_type,
            0,
            self.charset,
            self.content_type_extra,
        )

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()


def _receive_raw(request: HttpRequest, limit: int) -> Descriptor:
    digest = hashlib.sha256()
    count = 0
    with _Spool() as spool:
        for chunk in _raw_chunks(request):
            count += len(chunk)
            if count > limit:
                raise FileTooLarge(limit=limit)
            digest.update(chunk)
            spool.write(chunk)
        expected = _content_length(request)
        if expected is not None and count < expected:
            raise InvalidRequest("The upload stopped before its end; send it again.")
        return descriptors.from_file(spool.file, digest.hexdigest())


def _raw_chunks(request: HttpRequest) -> Iterator[bytes]:
    stream: Any = request
    if _content_length(request) is None and request.META.get("wsgi.input_terminated"):
        # A chunked body: Django takes it for an empty one, the server knows its end.
        stream = request.META["wsgi.input"]
    try:
        while chunk := stream.read(_CHUNK):
            yield chunk
    except OSError as error:
        raise InvalidRequest("The upload stopped before its end; send it again.") from error


def _is_spooled(request: HttpRequest) -> bool:
    """Whether the whole body has arrived before the view is called, as under ASGI."""
    return isinstance(request, ASGIRequest)


def _content_length(request: HttpRequest) -> int | None:
    try:
        return int(request.META["CONTENT_LENGTH"])
    except (KeyError, ValueError):
        return None


class _Spool:
    """Bytes in memory, up to where Django would write an upload to a file, too."""

    def __init__(self) -> None:
        self.file: IO[bytes] = io.BytesIO()
        self._memory = conf.upload_memory()
        self._in_memory = True

    def write(self, data: bytes) -> None:
        if self._in_memory and self.file.tell() + len(data) > self._memory:
            self._move()
        self.file.write(data)

    def _move(self) -> None:
        with self.file as before:
            self.file = tempfile.TemporaryFile(dir=conf.upload_directory())  # noqa: SIM115
            self.file.write(before.getvalue())  # type: ignore[attr-defined]
        self._in_memory = False

    def __enter__(self) -> _Spool:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.file.close()
