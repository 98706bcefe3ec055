"""Content streams for pypdf's text extraction: read one operation at a time, and replaced text.

pypdf reads a whole content stream into a list before it looks at the first
operation. Here the operations come as they are read, so that a long page costs
time and no memory, a broken one keeps the text before the break, and text that
the file itself gives for what it shows (``/ActualText``; ISO 32000-2, 14.9.4)
stands in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Self

from pypdf import get_configuration
from pypdf.errors import LimitReachedError, PdfReadError
from pypdf.generic import (
    ArrayObject,
    ContentStream,
    DictionaryObject,
    NameObject,
    StreamObject,
    create_string_object,
    read_object,
)
from pypdf.generic._image_inline import read_inline_image
from pypdf.generic._utils import StreamParsingBudget

from pdfpool_django.engines.pypdf_fonts import Fonts, Judged
from pdfpool_django.engines.pypdf_leniency import NO_OBJECT, REGULAR
from pdfpool_django.engines.pypdf_structure import StructureTexts
from pdfpool_django.sandbox.child import raise_if_out_of_memory

Operation = tuple[Any, bytes]

_END = rb"(?=[\0\t\n\f\r ()<>\[\]{}/%]|$)"
# What nearly all of a content stream is made of; pypdf's own reader takes the rest.
_TOKEN = re.compile(
    rb"(?:[\0\t\n\f\r ]+|%[^\r\n]*)*+"
    rb"(?:"
    rb"(?P<operator>[A-Za-z'\"][^\0\t\n\f\r ()<>\[\]{}/%]{0,127})" + _END + rb"|"
    rb"(?P<integer>[+-]?[0-9]{1,18})" + _END + rb"|"
    rb"(?P<real>[+-]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18}))" + _END + rb"|"
    rb"\((?P<string>[^()\\\r\n]*)\)|"
    rb"(?P<array>\[)|(?P<close>\])|"
    rb"<(?P<hex>(?:[0-9A-Fa-f]{2})*)>|"
    rb"/(?P<name>[A-Za-z0-9_.+*-]{1,127})" + _END + rb"|"
    rb"(?P<other>[^\0\t\n\f\r ])"
    rb")?"
)
_SHOWING = frozenset((b"Tj", b"TJ", b"'", b'"'))
_WATCHED = _SHOWING | {b"BDC", b"BMC", b"EMC", b"BT", b"ET", b"Do", b"Tf"}
_BEGINNINGS = b"(<[/+-.0123456789"
"""With what a string, dictionary, array, name or number begins."""
_GAP = -100
"""Thousandths of the font's size; a gap in a line moves farther, kerning less."""
_PATIENCE = 10_000
"""Places in one content that may be unreadable before the rest is given up."""
_ENDLESS = 5000
"""As how many of them counts a string that does not end: it takes reading to the content's end."""
_TEXT_OPERATOR = re.compile(rb"T[jJ]|Do|['\"]")


class Reading:
    """What is noticed while the pages of one document are read, each after `begin`."""

    def __init__(self, texts: StructureTexts) -> None:
        self.texts = texts
        self.fonts = Fonts()
        self._forms: dict[tuple[int, int], TextContent] = {}
        self.begin()

    def begin(self, replacing: bool = True) -> None:
        """Forget what was noticed of the page before.

        Args:
            replacing: Whether replacement text is to stand for what is shown.
        """
        self.replacing = replacing
        self.failure: Exception | None = None
        """The first exception that cost the page some of its content."""
        self.unmapped = False
        """Whether text was shown in a font that does not say which characters its glyphs are."""
        self.said: set[int] = set()
        """The structure elements whose replacement text has been given already."""

    def fail(self, error: Exception) -> None:
        """Note that `error` cost some of the content; one about memory is raised."""
        raise_if_out_of_memory(error)
        self.failure = self.failure or error

    def prepare_form(self, name: Any, resources: DictionaryObject, pdf: Any) -> None:
        """Put a content of ours in the place of a form among the resources, once.

        A form without resources uses those of the page (ISO 32000-1, 7.8.3).
        """
        xobjects = _dictionary(resources, "/XObject")
        if xobjects is None or name not in xobjects:
            return
        form = xobjects[name]
        if not isinstance(form, StreamObject) or form.get("/Subtype") == "/Image":
            return
        form = original(form)
        # One without resources has other ones wherever it is used.
        key = id(form), 0 if "/Resources" in form else id(resources)
        if key not in self._forms:
            self._forms[key] = TextContent.of_form(form, pdf, self, resources)
        content = self._forms[key]
        dict.__setitem__(xobjects, NameObject(name), content)
        if content.failure is not None:
            self.fail(content.failure)


class TextContent(ContentStream):
    """The content of a page or form, of which pypdf extracts the text.

    Args:
        parts: The streams that it is made of.
        pdf: The reader.
        reading: Where to note what goes wrong.
        resources: Fonts, forms and property lists that it names.
        key: Its number among the structure's parents (``/StructParents``).
    """

    def __init__(
        self,
        parts: list[Any],
        pdf: Any,
        reading: Reading,
        resources: DictionaryObject,
        key: Any = None,
    ) -> None:
        super().__init__(None, pdf, "bytes")
        self.reading = reading
        self.resources = resources
        self.key = key
        self.failure: Exception | None = None
        """What some of its data was lost to."""
        self.form: StreamObject | None = None
        """The form that it stands for; kept, so that no other object takes its id."""
        self.set_data(self._joined(parts))

    @classmethod
    def of_form(
        cls, form: StreamObject, pdf: Any, reading: Reading, outer: DictionaryObject
    ) -> TextContent:
        """Return the content of a form, which is a dictionary like the form, too."""
        resources = _dictionary(form, "/Resources")
        if resources is None:
            resources = outer
        else:
            reading.fonts.adapt(resources)
        content = cls([form], pdf, reading, resources, form.get("/StructParents"))
        content.form = form
        content.update(form)
        content[NameObject("/Resources")] = resources
        return content

    @property  # type: ignore[misc]
    def operations(self) -> Iterator[Operation]:  # type: ignore[override]
        """Yield the operations that text extraction is to see."""
        return _Replacement(self).operations()

    def get_data(self) -> bytes:
        """Return the data, which reading the operations leaves as it is."""
        return self._data

    def _joined(self, parts: list[Any]) -> bytes:
        """Return the data of the parts; one that cannot be decoded costs only itself."""
        limit = get_configuration().array_based_stream_maximum_output_length
        found, length = [], 0
        for part in parts:
            try:
                data = part.get_data()
            except Exception as error:
                self._fail(error)
                continue
            length += len(data) + 1
            if length > limit:
                self._fail(LimitReachedError(f"A content of more than {limit} bytes."))
                break
            found.append(data)
        data = found[0] if len(found) == 1 else b"\n".join(found)
        if _is_endless(data):
            self._fail(_too_many_tokens())
        return data

    def _fail(self, error: Exception) -> None:
        self.failure = self.failure or error
        self.reading.fail(error)


def original(value: Any) -> Any:
    """Return the form that a content of ours stands for; anything else as it is."""
    return value.form if isinstance(value, TextContent) and value.form is not None else value


def _dictionary(holder: DictionaryObject, key: str) -> DictionaryObject | None:
    value = holder.get(key)
    value = None if value is None else value.get_object()
    return value if isinstance(value, DictionaryObject) else None


def _is_endless(data: bytes) -> bool:
    """Whether content without text has more tokens than may be read, had it any text.

    What a page may cost is then the same whether or not a word is on it.
    Blanks and ends of lines are counted, which takes milliseconds.
    """
    limit = get_configuration().stream_parsing_work_maximum_count
    if len(data) <= limit or _TEXT_OPERATOR.search(data) is not None or data.isspace():
        return False
    return data.count(b" ") + data.count(b"\n") + data.count(b"\r") > limit


def _too_many_tokens() -> LimitReachedError:
    limit = get_configuration().stream_parsing_work_maximum_count
    return LimitReachedError(f"A content of more than {limit} numbers and operators.")


def _name(match: bytes) -> NameObject:
    return NameObject("/" + match.decode("ascii"))


def _hex_string(match: bytes) -> bytes:
    return bytes.fromhex(match.decode("ascii"))


_VALUES: dict[str | None, Callable[[bytes], Any]] = {
    "integer": int,
    "real": float,
    "string": bytes,
    "name": _name,
    "hex": _hex_string,
}


class _Tokens:
    """The operations of a content; what cannot be read of it is noted and skipped."""

    def __init__(self, content: TextContent) -> None:
        self._content = content
        self._data = content.get_data()
        self._stream = BytesIO(self._data)
        self._limit = get_configuration().stream_parsing_work_maximum_count
        self._budget = StreamParsingBudget(remaining_budget=self._limit)
        self._patience = _PATIENCE

    def operations(self) -> Iterator[Operation]:
        match_at, data, value_of = _TOKEN.match, self._data, _VALUES.get
        at, left = 0, self._limit
        operands: list[Any] = []
        target = operands  # or the array that is being read
        while (match := match_at(data, at)) is not None and (kind := match.lastgroup) is not None:
            at, left = match.end(), left - 1
            if left < 0:
                self._content.reading.fail(_too_many_tokens())
                return
            value = value_of(kind)
            if value is not None:
                target.append(value(match[kind]))
            elif kind == "operator":
                if target is not operands:  # an array that was never closed
                    operands.append(target)
                if match[kind] == b"BI":
                    at = self._after_image(at)
                else:
                    yield operands, match[kind]
                target = operands = []
            elif kind == "array" and target is operands:
                target = ArrayObject()
            elif kind == "close" and target is not operands:
                operands.append(target)
                target = operands
            else:
                at = self._read_other(at - 1, target)

    def _read_other(self, at: int, target: list[Any]) -> int:
        """Read what is no common token, and add it; return the place after it."""
        try:
            if self._data[at] not in _BEGINNINGS:
                raise PdfReadError(f"{NO_OBJECT[0]} at {at} of a content")
            self._stream.seek(at)
            target.append(read_object(self._stream, None, "bytes", parsing_budget=self._budget))
        except Exception as error:
            self._content.reading.fail(error)
            self._patience -= 1 if str(error).startswith(NO_OBJECT) else _ENDLESS
            if self._patience < 0 or not isinstance(error, PdfReadError):
                return len(self._data)
            rest = REGULAR.match(self._data, at + 1)
            return at + 1 if rest is None else rest.end()
        return self._stream.tell()

    def _after_image(self, at: int) -> int:
        """Return the place after an inline image; the content's end where it has none."""
        self._stream.seek(at)
        try:
            read_inline_image(
                content_stream=self._content, stream=self._stream, parsing_budget=self._budget
            )
        except Exception as error:
            self._content.reading.fail(error)
            return len(self._data)
        return self._stream.tell()


class _StandIn(str):  # noqa: SLOT000 - a few live at a time
    """Text in the place of other text, and as wide: pypdf measures what iterating over it gives."""

    def __new__(cls, text: str, measured: str) -> Self:
        stand_in = super().__new__(cls, text)
        stand_in.measured = measured
        return stand_in

    measured: str

    def __iter__(self) -> Iterator[str]:
        return iter(self.measured)


class _Replacement:
    """The operations of one content, with replacement text in the place of what it replaces."""

    def __init__(self, content: TextContent) -> None:
        self._content = content
        self._resources = content.resources
        self._reading = content.reading
        self._font = Judged()
        self._depth = 0
        self._replaced_from = 0
        self._text: str | None = None
        self._in_text = False

    def operations(self) -> Iterator[Operation]:
        for operation in _Tokens(self._content).operations():
            operator = operation[1]
            if operator not in _WATCHED:
                yield operation
            elif operator in _SHOWING:
                self._note_font()
                if self._replaced_from:
                    yield from self._instead_of(operation)
                else:
                    yield operation
            elif operator == b"EMC":
                yield from self._end()
            elif self._is_kept(operation):
                yield operation

    def _note_font(self) -> None:
        """Take note that text is shown in the selected font."""
        if self._font.failure is not None:
            self._reading.fail(self._font.failure)
        elif self._font.unmapped:
            self._reading.unmapped = True

    def _is_kept(self, operation: Operation) -> bool:
        """Take note of an operation; return whether text extraction is to see it."""
        operands, operator = operation
        if operator == b"Tf":
            name = operands[0] if operands else None
            self._font = self._reading.fonts.judged(self._resources, name)
        elif operator == b"Do":
            if self._replaced_from:
                return False
            if operands:
                self._reading.prepare_form(operands[0], self._resources, self._content.pdf)
        elif operator in (b"BT", b"ET"):
            self._in_text = operator == b"BT"
        else:
            self._begin(operands if operator == b"BDC" else [])
        return True

    def _begin(self, operands: list[Any]) -> None:
        self._depth += 1
        if self._replaced_from or len(operands) != 2 or not self._reading.replacing:
            return
        text = self._replacement_of(operands[1])
        if text is not None:
            self._text, self._replaced_from = text, self._depth

    def _end(self) -> Iterator[Operation]:
        if self._replaced_from and self._depth == self._replaced_from:
            if self._text:  # nothing was shown in whose place it could have come
                yield from self._shown_alone(self._text)
            self._text, self._replaced_from = None, 0
        self._depth = max(0, self._depth - 1)

    def _instead_of(self, operation: Operation) -> Iterator[Operation]:
        """Show the replacement text, as wide as what is shown in its place."""
        operands, operator = operation
        if operator in (b"'", b'"'):
            yield [], b"T*"
        shown = operands[-1] if operands else None
        parts = shown if operator == b"TJ" and isinstance(shown, ArrayObject) else [shown]
        stand_ins = ArrayObject(each for part in parts for each in self._stand_in(part))
        yield [stand_ins], b"TJ"

    def _stand_in(self, part: Any) -> Iterator[Any]:
        if isinstance(part, bytes):
            text, self._text = self._text or "", None
            yield _StandIn(text, part.decode(self._font.codec, "replace"))
        elif isinstance(part, (int, float)) and part > _GAP:
            yield part

    def _shown_alone(self, text: str) -> Iterator[Operation]:
        if self._in_text:
            yield [text], b"Tj"
        else:
            yield [], b"BT"
            yield [text], b"Tj"
            yield [], b"ET"

    def _replacement_of(self, properties: Any) -> str | None:
        """Return the text that stands for marked content; ``None`` where it stands for itself."""
        if isinstance(properties, NameObject):
            properties = self._property_list(properties)
        if not isinstance(properties, DictionaryObject):
            return None
        try:
            text = properties.get("/ActualText")
            if text is not None:
                return _as_text(text.get_object())
            return self._text_of_element(properties.get("/MCID"))
        except Exception as error:  # then what is shown stands for itself
            raise_if_out_of_memory(error)
            return None

    def _property_list(self, name: NameObject) -> Any:
        lists = _dictionary(self._resources, "/Properties")
        found = None if lists is None else lists.get(name)
        return None if found is None else found.get_object()

    def _text_of_element(self, mcid: Any) -> str | None:
        """Return the replacement text of the structure element that the content belongs to."""
        key = self._content.key
        if not isinstance(mcid, int) or not isinstance(key, int):
            return None
        found = self._reading.texts.of(key, mcid)
        if found is None:
            return None
        element, text = found
        if element in self._reading.said:
            return ""
        self._reading.said.add(element)
        return text


def _as_text(value: Any) -> str | None:
    """Return a text string as one; within content, pypdf gives its bytes."""
    if isinstance(value, bytes):
        value = create_string_object(bytes(value))
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value) if isinstance(value, str) and not isinstance(value, NameObject) else None
