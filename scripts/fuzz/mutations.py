"""Ways to damage a PDF, each by the throws of a dice, so that a seed makes the same file again."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from scripts.fuzz import anatomy

Mutation = Callable[[bytes, random.Random], bytes]

MUTATIONS: list[Mutation] = []

TOKENS = (
    *(b"<<", b">>", b"[", b"]", b"(", b")", b"<", b">", b"{", b"}", b"%", b"/", b"\x00", b"\r"),
    *(b" 0 R", b" 1 0 R", b" null ", b" true ", b"endobj", b"endstream", b"\nstream\n", b" obj "),
    *(b"/Type", b"/Pages", b"/Page", b"/Kids", b"/Parent", b"/Contents", b"/Length", b"/Filter"),
    *(b"/ObjStm", b"/XRef", b"/Prev", b"/Encrypt", b"/ToUnicode", b"/Font", b"/XObject", b"/Form"),
    *(b" BT ", b" ET ", b" Tf ", b" Tj ", b" TJ ", b" ' ", b' " ', b" Do ", b" q ", b" Q "),
    *(b" BI ", b" ID ", b" EI ", b" BDC ", b" EMC ", b" Tm ", b" Td ", b" cm ", b" T* "),
    *(b" beginbfchar ", b" endbfchar ", b" beginbfrange ", b" begincodespacerange ", b" usecmap "),
    *(b"\xfe\xff", b"\xd8\x00", b"\xef\xbb\xbf", b"\\000", b"\\", b"<FFFF>", b"<D800>"),
)
NUMBERS = (
    *(b"0", b"-1", b"1", b"255", b"65535", b"65536", b"2147483647", b"-2147483648", b"4294967295"),
    *(b"9223372036854775807", b"99999999999999999999", b"9" * 400, b"-0", b"0.0", b"1e400", b"--5"),
    *(b".", b"+", b"1.7976931348623157e308", b"0." + b"0" * 300 + b"1", b"NaN", b"null"),
)
FILTERS = (
    *(b"/FlateDecode", b"/LZWDecode", b"/ASCIIHexDecode", b"/ASCII85Decode", b"/RunLengthDecode"),
    *(b"/DCTDecode", b"/JPXDecode", b"/JBIG2Decode", b"/CCITTFaxDecode", b"/Crypt", b"/Fl"),
    *(b"/NoSuchFilter", b"null", b"7", b"[]", b"<< >>", b"[/FlateDecode /FlateDecode]"),
    *(b"[/ASCIIHexDecode /FlateDecode]", b"[/RunLengthDecode /LZWDecode]", b"(FlateDecode)"),
)

_NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_NAME = re.compile(rb"/[A-Za-z][A-Za-z0-9]*")
_REFERENCE = re.compile(rb"(?<!\d)(\d+) (\d+) R\b")
_LENGTH = re.compile(rb"/Length \d+")
_FILTER = re.compile(rb"/Filter ?(?:/\w+|\[[^\]]*\])")
_HEX = re.compile(rb"<[0-9A-Fa-f]{2,}>")
_TABLE_ROW = re.compile(rb"\d{10} \d{5} [nf]")
_STARTXREF = re.compile(rb"startxref\s+\d+")

_MOST_BYTES = 16


def mutation(change: Mutation) -> Mutation:
    """Register a way."""
    MUTATIONS.append(change)
    return change


def mutated(data: bytes, dice: random.Random) -> bytes:
    """Return the file damaged in one to four ways, and mostly with a table that fits."""
    for _ in range(dice.choice((1, 1, 2, 2, 3, 4))):
        data = dice.choice(MUTATIONS)(data, dice)
    if dice.random() < 0.5:
        data = anatomy.with_table(data)
    # The table's own damage comes last, or it would be mended.
    return damage_table(data, dice) if dice.random() < 0.05 else data


# Bytes, wherever they are


@mutation
def flip_bits(data: bytes, dice: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(dice.randint(1, _MOST_BYTES) if out else 0):
        out[dice.randrange(len(out))] ^= 1 << dice.randrange(8)
    return bytes(out)


@mutation
def set_bytes(data: bytes, dice: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(dice.randint(1, _MOST_BYTES) if out else 0):
        out[dice.randrange(len(out))] = dice.choice((0, 255, 10, 13, 32, dice.randrange(256)))
    return bytes(out)


@mutation
def truncate(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randint(0, len(data))]


@mutation
def cut_out(data: bytes, dice: random.Random) -> bytes:
    start, size = dice.randint(0, len(data)), dice.choice((1, 2, 8, 64, 512))
    return data[:start] + data[start + size :]


@mutation
def insert(data: bytes, dice: random.Random) -> bytes:
    at = dice.randint(0, len(data))
    return data[:at] + _something(data, dice) + data[at:]


def _something(data: bytes, dice: random.Random) -> bytes:
    start = dice.randint(0, len(data))
    return dice.choice(
        (
            dice.choice(TOKENS),
            dice.choice(TOKENS) * dice.choice((2, 100, 3000)),
            dice.choice(NUMBERS),
            dice.randbytes(dice.randint(1, 64)),
            data[start : start + dice.choice((4, 40, 400))],
        )
    )


# Tokens


def _at_one(pattern: re.Pattern[bytes], data: bytes, dice: random.Random, by: bytes) -> bytes:
    """Replace one of the pattern's matches, if there is any."""
    found = list(pattern.finditer(data))
    if not found:
        return data
    match = dice.choice(found)
    return data[: match.start()] + by + data[match.end() :]


@mutation
def extreme_number(data: bytes, dice: random.Random) -> bytes:
    return _at_one(_NUMBER, data, dice, dice.choice(NUMBERS))


@mutation
def other_name(data: bytes, dice: random.Random) -> bytes:
    names = _NAME.findall(data) or [b"/Type"]
    return _at_one(_NAME, data, dice, dice.choice(names))


@mutation
def swap_names(data: bytes, dice: random.Random) -> bytes:
    """Give two keys, or a key and a value, each other's place."""
    found = list(_NAME.finditer(data))
    if len(found) < 2:
        return data
    first, second = sorted(dice.sample(found, 2), key=lambda match: match.start())
    return b"".join(
        (
            data[: first.start()],
            second[0],
            data[first.end() : second.start()],
            first[0],
            data[second.end() :],
        )
    )


@mutation
def other_reference(data: bytes, dice: random.Random) -> bytes:
    """Have a reference lead elsewhere: to another object, to itself, or to none."""
    numbers = [part.number for part in anatomy.parts(data)] or [1]
    number = dice.choice((*numbers, 0, max(numbers) + 1))
    return _at_one(_REFERENCE, data, dice, b"%d 0 R" % number)


@mutation
def reference_for_number(data: bytes, dice: random.Random) -> bytes:
    numbers = [part.number for part in anatomy.parts(data)] or [1]
    return _at_one(_NUMBER, data, dice, b"%d 0 R" % dice.choice(numbers))


@mutation
def other_code(data: bytes, dice: random.Random) -> bytes:
    """Replace a string in hexadecimal digits, of which maps and codes are made."""
    digits = dice.randbytes(dice.choice((1, 2, 3, 4, 50))).hex().encode()
    return _at_one(_HEX, data, dice, b"<%s>" % digits[: dice.randint(1, len(digits))])


# Objects and streams


@mutation
def swap_objects(data: bytes, dice: random.Random) -> bytes:
    found = anatomy.parts(data)
    if len(found) < 2:
        return data
    first, second = sorted(dice.sample(found, 2), key=lambda part: part.start)
    data = anatomy.replaced(data, second, first.body)
    return anatomy.replaced(data, first, second.body)


@mutation
def duplicate_object(data: bytes, dice: random.Random) -> bytes:
    """Write an object once more, under its own number or another's."""
    found = anatomy.parts(data)
    if not found:
        return data
    part, number = dice.choice(found), dice.choice(found).number
    at = dice.choice(found).end + len(b"endobj\n")
    return data[:at] + b"\n" + part.written(number, part.body) + b"\n" + data[at:]


@mutation
def drop_object(data: bytes, dice: random.Random) -> bytes:
    found = anatomy.parts(data)
    if not found:
        return data
    return anatomy.replaced(data, dice.choice(found), b" null ")


@mutation
def change_filter(data: bytes, dice: random.Random) -> bytes:
    entry = b"/Filter " + dice.choice(FILTERS)
    if _FILTER.search(data) and dice.random() < 0.7:
        return _at_one(_FILTER, data, dice, entry)
    return _at_one(_LENGTH, data, dice, entry + b" /Length 99")


@mutation
def change_length(data: bytes, dice: random.Random) -> bytes:
    length = dice.choice((*NUMBERS[:9], b"%d" % dice.randint(0, 2000), b"1 0 R", b"(9)"))
    return _at_one(_LENGTH, data, dice, b"/Length " + length)


@mutation
def within_stream(data: bytes, dice: random.Random) -> bytes:
    """Damage what a stream has when it is decoded, and encode it again.

    So the readers of content, fonts, maps and packed objects get to see it, and not zlib alone.
    """
    streams = [
        (part, found) for part in anatomy.parts(data) if (found := anatomy.stream(part.body))
    ]
    if not streams:
        return data
    part, found = dice.choice(streams)
    content = found.inflated()
    for _ in range(dice.randint(1, 3)):
        content = dice.choice(_OF_CONTENT)(content, dice)
    return anatomy.replaced(data, part, found.with_data(content))


_OF_CONTENT: tuple[Mutation, ...] = (
    *(flip_bits, set_bytes, cut_out, insert, insert, extreme_number, extreme_number),
    *(other_name, swap_names, other_code, other_code, truncate),
)
# The likeliest to get past the outer layers, so it is tried more often.
MUTATIONS += [within_stream] * 5


# The table


@mutation
def damage_table(data: bytes, dice: random.Random) -> bytes:
    """Have the cross-reference table lead elsewhere."""
    if dice.random() < 0.3:
        return _at_one(_STARTXREF, data, dice, b"startxref\n%d" % dice.randint(0, len(data) + 9))
    offset = dice.randint(0, len(data))
    for _ in range(dice.randint(1, 4)):
        kind = dice.choice((b"n", b"n", b"f"))
        data = _at_one(_TABLE_ROW, data, dice, b"%010d %05d %s" % (offset, 0, kind))
    return data
