"""pypdf: pure Python, so nothing that a document does can reach beyond Python's own errors."""

from __future__ import annotations

import codecs
import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property, partial
from importlib import import_module, resources
from typing import IO, Any, cast

import pypdf
from pypdf import PageObject, PasswordType, PdfReader
from pypdf.errors import DependencyError, LimitReachedError
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    NameObject,
    StreamObject,
    is_null_or_none,
)

from pdfpool_django.engines import (
    pypdf_annotations,
    pypdf_images,
    pypdf_leniency,
    pypdf_parts,
    pypdf_repair,
)
from pdfpool_django.engines.base import (
    MAX_DETAIL,
    Engine,
    OpenDocument,
    Remark,
    TextLost,
    limit_reached,
)
from pdfpool_django.engines.pypdf_content import Reading, TextContent
from pdfpool_django.engines.pypdf_structure import StructureTexts
from pdfpool_django.errors import (
    InvalidPdf,
    PasswordRequired,
    PdfPoolError,
    TooManyPages,
    Unsupported,
    WrongPassword,
)
from pdfpool_django.sandbox.child import describe
from pdfpool_django.text import clean

MAX_METADATA = 2001
"""Characters kept of one metadata value: one more than a result has, which so knows it was cut."""

_MAX_LABEL = 100
_MAX_FORM_DEPTH = 4
_LOOP = re.compile(r"\b(cycl\w+|loop)\b")
"""What pypdf calls a limit, too, and is none that could be raised."""
# What pypdf imports only when a document needs it, which is too late in a child.
_LAZY_MODULES = (
    "brotli",
    "pypdf._codecs.core_font_metrics",
    "pypdf._crypt_providers._fallback",
    "pypdf.filters",
    "pypdf.generic._image_inline",
    "pypdf.xmp",
)
_CODECS = (
    *("ascii", "charmap", "cp1252", "latin-1", "mac-roman", "raw-unicode-escape"),
    *("unicode-escape", "utf-16", "utf-16-be", "utf-16-le", "utf-8-sig"),
    *("big5", "big5hkscs", "cp932", "cp949", "cp950", "euc-jp", "euc-kr", "gb18030", "gb2312"),
    *("gbk", "iso2022-jp", "johab", "shift-jis"),
)
_WARM_FILES = ("plain.pdf", "aes.pdf", "rc4.pdf", "small.pdf")
_REHEARSED = "small.pdf"
"""What each child reads while it waits: short, as the next document may wait for it."""

_METADATA = {
    "/Title": "title",
    "/Author": "author",
    "/Subject": "subject",
    "/Keywords": "keywords",
    "/Creator": "creator",
    "/Producer": "producer",
}
_DATES = {
    "/CreationDate": ("created", "creation_date"),
    "/ModDate": ("modified", "modification_date"),
}

_LOST_TEXT = (
    "Impossible to decode XFormObject",
    "Exceeded %(limit)d form XObject invocations",
)
"""How log records begin by which pypdf says that it has left text out."""


class PypdfDocument(OpenDocument):
    """A document opened by pypdf."""

    def __init__(self, reader: PdfReader, max_pages: int) -> None:
        self._reader = reader
        self._max_pages = max_pages
        self._reading = Reading(StructureTexts(reader))

    @cached_property
    def page_count(self) -> int:
        try:
            count = len(self._reader.pages)
        except LimitReachedError as error:
            if "page tree" not in str(error):
                raise
            raise TooManyPages(
                "The file has more than %(limit)d pages; split it and send the parts.",
                limit=self._max_pages,
            ) from error
        if count > self._max_pages:
            raise TooManyPages(page_count=count, limit=self._max_pages)
        return count

    @property
    def claimed_page_count(self) -> int:
        """What the file says is the number of its pages, whether it is or not."""
        pages = self._reader.root_object.get("/Pages")
        count = None if pages is None else pages.get_object().get("/Count")
        return count if isinstance(count, int) else 0

    def remarks(self) -> Iterator[Remark]:
        form = self._reader.root_object.get("/AcroForm")
        form = None if form is None else form.get_object()
        if isinstance(form, DictionaryObject) and "/XFA" in form:
            yield "xfa_form", "The form is XFA, which is not read; its pages may be placeholders."

    def metadata(self) -> dict[str, Any]:
        info = self._reader.metadata
        if info is None:
            return {}
        values: dict[str, Any] = {
            name: pypdf_parts.text_of(info[key])[:MAX_METADATA]
            for key, name in _METADATA.items()
            if key in info and isinstance(info[key], (str, bytes))
        }
        dates = {
            name: _date(info, attribute) for key, (name, attribute) in _DATES.items() if key in info
        }
        return values | dates

    @cached_property
    def _labels(self) -> list[str]:
        return self._reader.page_labels

    def label(self, number: int) -> str:
        return self._labels[number - 1][:_MAX_LABEL]

    def text(self, number: int) -> str:
        return self._text(number, replacing=True)

    def shown_text(self, number: int) -> str:
        return self._text(number, replacing=False)

    def _text(self, number: int, *, replacing: bool) -> str:
        page = self._page(number)
        self._reading.begin(replacing)
        with self._content_of_ours(page):
            text = page.extract_text()
        text = "\n".join([text, *pypdf_annotations.values(page)])
        if self._reading.failure is not None:
            raise TextLost(text, self._reading.failure)
        return text

    @contextlib.contextmanager
    def _content_of_ours(self, page: PageObject) -> Iterator[None]:
        """Let the page have its content in a form that is read as it is needed."""
        parts = _streams(page.get("/Contents"))
        resources = page.get_inherited("/Resources")
        resources = None if resources is None else resources.get_object()
        if not parts or not isinstance(resources, DictionaryObject):
            yield  # there is no text
            return
        self._reading.fonts.adapt(resources)
        key = page.get("/StructParents")
        content = TextContent(parts, self._reader, self._reading, resources, key)
        theirs = page.raw_get("/Contents")
        page[NameObject("/Contents")] = content
        try:
            yield
        finally:
            page[NameObject("/Contents")] = theirs

    def page_remarks(self, number: int, text: str) -> Iterator[Remark]:
        if self._reading.unmapped or (text and not clean(text)):
            yield (
                "unmapped_text",
                "A font of the page does not say which characters its glyphs are, "
                "so some of the text is not what the page shows.",
            )
        if not clean(text).strip() and self.has_images(number):
            yield "no_text_layer", "The page has pictures and no text: a scan."

    def has_images(self, number: int) -> bool:
        page = self._page(number)
        contents = page.get_contents()
        inline = contents is not None and b"BI" in contents.get_data()
        return inline or any(_images_in(page.get("/Resources"), _MAX_FORM_DEPTH))

    @property
    def version(self) -> str | None:
        return pypdf_parts.version(self._reader)

    @property
    def encrypted(self) -> bool:
        return self._reader.is_encrypted

    def size(self, number: int) -> tuple[float, float]:
        return pypdf_parts.size(self._page(number))

    def rotation(self, number: int) -> int:
        return pypdf_parts.rotation(self._page(number))

    def images(self, number: int) -> Iterator[tuple[dict[str, Any], bytes]]:
        return pypdf_images.images(self._page(number), engine.error)

    def fonts(self, number: int) -> Iterator[dict[str, Any]]:
        return pypdf_parts.fonts(self._page(number))

    def outline(self) -> Iterator[dict[str, Any]]:
        return pypdf_parts.outline(self._reader)

    def attachments(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        return pypdf_parts.attachments(self._reader, engine.error)

    def permissions(self) -> dict[str, bool]:
        return pypdf_parts.permissions(self._reader)

    def _page(self, number: int) -> PageObject:
        page = self._reader.pages[number - 1]
        _inherit_resources(page)
        return page


def _inherit_resources(page: PageObject) -> None:
    """Take the tree's resources where the page's are null, which is to have none of its own."""
    if "/Resources" in page and is_null_or_none(page["/Resources"]):
        del page["/Resources"]
        found = page.get_inherited("/Resources")
        if not is_null_or_none(found):
            page[NameObject("/Resources")] = found


def _streams(contents: Any) -> list[StreamObject]:
    """Return the streams that a page's content consists of; what is none shows nothing."""
    contents = None if contents is None else contents.get_object()
    if isinstance(contents, ArrayObject):
        contents = [each.get_object() for each in contents]
    else:
        contents = [contents]
    return [each for each in contents if isinstance(each, StreamObject)]


def _date(info: Any, attribute: str) -> str | None:
    """Return a date in ISO 8601; one that is none (ISO 32000-2, 7.9.4) is ``None``."""
    try:
        value = getattr(info, attribute)
    except (ValueError, TypeError, OverflowError):
        return None
    return value.isoformat() if isinstance(value, datetime) else None


def _images_in(resources_object: Any, depth: int) -> Iterator[bool]:
    """Yield true for each image among the resources, those of forms included."""
    found = resources_object.get_object() if resources_object is not None else None
    xobjects = found.get("/XObject") if isinstance(found, DictionaryObject) else None
    if xobjects is None or depth == 0:
        return
    for each in xobjects.get_object().values():
        xobject = each.get_object()
        if xobject.get("/Subtype") == "/Image":
            yield True
        else:
            yield from _images_in(xobject.get("/Resources"), depth - 1)


class PypdfEngine(Engine):
    """Reads documents with pypdf."""

    identity = f"pypdf {pypdf.__version__}"
    loggers = ("pypdf",)

    def warm(self) -> None:
        pypdf_leniency.install()
        warnings.simplefilter("ignore")
        logging.getLogger("pypdf").propagate = False
        logging.getLogger("pypdf").addHandler(logging.NullHandler())
        for name in _LAZY_MODULES:
            with contextlib.suppress(ImportError):
                import_module(name)
        for name in _CODECS:
            codecs.lookup(name)
        for name in _WARM_FILES:
            self._read(_sample(name))
        self._rehearsed = _sample(_REHEARSED)

    def warm_images(self) -> None:
        pypdf_images.warm()

    def rehearse(self) -> None:
        self._read(self._rehearsed)

    def _read(self, sample: bytes) -> None:
        session = self.session()
        opening = session.handle("open", {"password": None, "max_pages": 100}, io.BytesIO(sample))
        pages = next(opening)[0]["page_count"]
        for part, _ in session.handle("pages", {"ranges": [[1, pages]]}, None):
            if part["error"] is not None:
                raise RuntimeError(f"a bundled sample cannot be read: {part['error']}")

    def open(self, file: io.BufferedIOBase, password: str | None, max_pages: int) -> PypdfDocument:
        # A tree has inner nodes, too, which are not pages.
        pypdf.overwrite_configuration(page_tree_maximum_entries=2 * max_pages + 100)
        return pypdf_repair.opened(file, partial(_opened, password=password, max_pages=max_pages))

    def error(self, error: Exception) -> PdfPoolError:
        if isinstance(error, LimitReachedError) and not _LOOP.search(str(error)):
            return limit_reached(str(error))
        if isinstance(error, (NotImplementedError, DependencyError)):
            return Unsupported(reason=describe(error)[:MAX_DETAIL])
        return super().error(error)

    def loss(self, record: logging.LogRecord) -> PdfPoolError | None:
        if not str(record.msg).startswith(_LOST_TEXT):
            return None
        values = record.args if isinstance(record.args, dict) else {}
        cause = values.get("exception")
        if isinstance(cause, MemoryError):
            raise cause
        if isinstance(cause, KeyError):
            return None  # it names what the file does not have, so there is no text to lose
        if isinstance(cause, Exception) and not isinstance(cause, LimitReachedError):
            return InvalidPdf(reason=describe(cause)[:MAX_DETAIL])
        return limit_reached(record.getMessage())


def _opened(file: io.BufferedIOBase, password: str | None, max_pages: int) -> PypdfDocument:
    """Return the document, unlocked and with its pages found."""
    reader = PdfReader(
        cast(IO[bytes], file), root_object_recovery_limit=pypdf_leniency.ROOT_SEARCH
    )  # tries the empty password by itself
    if reader.is_encrypted:
        _unlock(reader, password)
    document = PypdfDocument(reader, max_pages)
    document.page_count  # noqa: B018 - found here, where a file that is broken can still be mended
    return document


def _unlock(reader: PdfReader, password: str | None) -> None:
    if reader.decrypt("") != PasswordType.NOT_DECRYPTED:
        return
    if not password:  # an empty one has been tried
        raise PasswordRequired
    if reader.decrypt(password) == PasswordType.NOT_DECRYPTED:
        raise WrongPassword


def _sample(name: str) -> bytes:
    return (resources.files("pdfpool_django.engines") / "warm" / name).read_bytes()


engine = PypdfEngine()
