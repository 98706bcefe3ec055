"""The pictures of a page: every kind decoded, and one that cannot be is reported."""

from __future__ import annotations

import io
import zlib
from typing import Any

import pytest

from pdfpool_django.documents import Document, Image
from pdfpool_django.errors import OutputTooLarge
from pdfpool_django.sandbox.host import Sandbox
from scripts.pdf_builder import PdfBuilder, add_picture, text_content
from tests.handle_values.opening import PYPDF_MEMORY, form, opened, page_of
from tests.sandbox.helpers import sandbox_of

Pillow = pytest.importorskip("PIL.Image")
features = pytest.importorskip("PIL.features")

RED, BLUE = (200, 30, 40), (10, 20, 220)
PIXELS = bytes(RED + BLUE)
"""Two pixels in RGB, side by side."""
FLATE = b"/Filter /FlateDecode /BitsPerComponent 8 /ColorSpace "
BROKEN = b"/Filter /DCTDecode /BitsPerComponent 8 /ColorSpace /DeviceRGB"


def flat(data: bytes) -> bytes:
    return zlib.compress(data)


def file_of(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    out = io.BytesIO()
    Pillow.frombytes("RGB", (2, 1), PIXELS).convert(mode).save(out, kind, **options)
    return out.getvalue()


def decoded(image: Image) -> Any:
    """Return the picture, as Pillow opens the file that it is."""
    assert image.error is None
    opened_file = Pillow.open(io.BytesIO(image.data))
    assert opened_file.size == (image.width, image.height)
    return opened_file


def shown(document: Document) -> tuple[Image, ...]:
    return document.page(1).images()


def with_pictures(builder: PdfBuilder, content: bytes = b"", **pictures: bytes | int) -> bytes:
    return builder.build([page_of(builder, content, xobjects=pictures)])


def close_to(found: tuple[int, ...], wanted: tuple[int, ...], off: int = 12) -> bool:
    return all(abs(one - other) <= off for one, other in zip(found, wanted, strict=True))


@pytest.mark.parametrize(
    ("name", "data", "entries", "mode"),
    [
        ("rgb", flat(PIXELS), FLATE + b"/DeviceRGB", "RGB"),
        ("gray", flat(bytes([7, 250])), FLATE + b"/DeviceGray", "L"),
        ("cmyk", flat(bytes([0, 255, 255, 0, 255, 255, 0, 0])), FLATE + b"/DeviceCMYK", "CMYK"),
        (
            "indexed",
            flat(bytes([1, 0])),
            FLATE + b"[/Indexed /DeviceRGB 1 <%s>]" % bytes(BLUE + RED).hex().encode(),
            "RGB",
        ),
        ("unfiltered", PIXELS, b"/BitsPerComponent 8 /ColorSpace /DeviceRGB", "RGB"),
        ("mask", flat(b"\x80"), b"/Filter /FlateDecode /ImageMask true /BitsPerComponent 1", "1"),
    ],
)
def test_a_picture_of_samples_is_a_file(
    pypdf_sandbox: Sandbox, name: str, data: bytes, entries: bytes, mode: str
) -> None:
    builder = PdfBuilder()
    number = add_picture(builder, 2, 1, data, entries)
    with opened(pypdf_sandbox, with_pictures(builder, **{name: number})) as document:
        (image,) = shown(document)
    ending = "tif" if mode == "CMYK" else "png"
    assert (image.page, image.name, image.format) == (1, f"{name}.{ending}", ending)
    found = decoded(image)
    assert (found.mode, found.size) == (mode, (2, 1))
    if mode == "RGB":
        assert (found.getpixel((0, 0)), found.getpixel((1, 0))) == (RED, BLUE)
    else:
        assert found.getpixel((0, 0)) != found.getpixel((1, 0))


def test_a_jpeg_is_one(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    entries = b"/Filter /DCTDecode /BitsPerComponent 8 /ColorSpace /DeviceRGB"
    number = add_picture(builder, 2, 1, file_of("JPEG", quality=100, subsampling=0), entries)
    with opened(pypdf_sandbox, with_pictures(builder, Photo=number)) as document:
        (image,) = shown(document)
    assert (image.name, image.format) == ("Photo.jpg", "jpg")
    assert close_to(decoded(image).getpixel((0, 0)), RED)


@pytest.mark.skipif(not features.check("jpg_2000"), reason="this Pillow has no JPEG 2000")
def test_a_jpeg_2000_is_one(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    entries = b"/Filter /JPXDecode /ColorSpace /DeviceRGB"
    number = add_picture(builder, 2, 1, file_of("JPEG2000", no_jp2=False), entries)
    with opened(pypdf_sandbox, with_pictures(builder, Scan=number)) as document:
        (image,) = shown(document)
    assert (image.name, image.format) == ("Scan.jp2", "jp2")
    assert close_to(decoded(image).getpixel((1, 0)), BLUE)


INLINE = b"q BI /W 2 /H 1 /BPC 8 /CS %s /F /AHx ID %s> EI Q\n"


def test_pictures_in_the_content_are_found(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    content = (
        text_content("BI is no picture")
        + b"\n"
        + INLINE % (b"/RGB", PIXELS.hex().encode())
        + INLINE % (b"[/I /RGB 1 <%s>]" % PIXELS.hex().encode(), b"0001")
        + INLINE % (b"/Mine", b"07FA")
    )
    spaces = b"/ColorSpace << /Mine /DeviceGray >>"
    data = builder.build([page_of(builder, content, more=spaces)])
    with opened(pypdf_sandbox, data) as document:
        images = shown(document)
    assert [image.name for image in images] == ["inline1.png", "inline2.png", "inline3.png"]
    assert decoded(images[0]).getpixel((0, 0)) == RED
    assert decoded(images[1]).convert("RGB").getpixel((1, 0)) == BLUE
    assert decoded(images[2]).getpixel((1, 0)) == 250


def test_pictures_in_forms_are_found_each_once(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    inside = add_picture(builder, 2, 1, flat(PIXELS), FLATE + b"/DeviceRGB")
    gray = add_picture(builder, 1, 1, flat(b"\x07"), FLATE + b"/DeviceGray")
    inner = form(builder, b"", b"/XObject << /Deep %d 0 R /Again %d 0 R >>" % (inside, gray))
    names = b"/XObject << /In %d 0 R >>" % inner
    outer = form(builder, INLINE % (b"/G", b"07FA"), names)
    poor = form(builder, INLINE % (b"/G", b"0102"))
    data = with_pictures(builder, Gray=gray, Outer=outer, Poor=poor, Inner=inner)
    with opened(pypdf_sandbox, data) as document:
        images = shown(document)
        names_found = [image.name for image in images]
        assert names_found == ["Gray.png", "inline1.png", "inline2.png", "Deep.png"]
        document.page(1).text()
        assert shown(document) == images


@pytest.mark.parametrize(
    ("data", "entries"),
    [
        (b"no such thing", BROKEN),
        (b"no such thing", FLATE + b"/DeviceRGB"),
        (b"", FLATE + b"/DeviceRGB"),
        (b"\0", b"/Filter /NoSuchFilter /ColorSpace /DeviceGray /BitsPerComponent 8"),
        (flat(PIXELS), FLATE + b"[/Indexed]"),
        (b"\0\1", b"/Filter /JBIG2Decode /BitsPerComponent 1"),
    ],
)
def test_one_that_cannot_be_decoded_is_reported_and_the_others_follow(
    pypdf_sandbox: Sandbox, data: bytes, entries: bytes
) -> None:
    builder = PdfBuilder()
    good = add_picture(builder, 2, 1, flat(PIXELS), FLATE + b"/DeviceRGB")
    bad = add_picture(builder, 2, 1, data, entries)
    later = add_picture(builder, 1, 1, flat(b"\x07"), FLATE + b"/DeviceGray")
    file = with_pictures(builder, Good=good, Bad=bad, Later=later)
    with opened(pypdf_sandbox, file) as document:
        images = shown(document)
    assert [image.name for image in images][::2] == ["Good.png", "Later.png"]
    reported = images[1]
    assert (reported.name, reported.format, reported.data) == ("Bad", None, b"")
    assert (reported.width, reported.height) == (2, 1)
    assert reported.error is not None
    assert reported.error["code"] in ("invalid_pdf", "unsupported")
    assert reported.error["detail"]


def test_one_without_a_size_is_reported(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    bare = builder.add_stream(flat(PIXELS), b"/Subtype /Image " + FLATE + b"/DeviceRGB")
    empty = add_picture(builder, 0, 0, flat(PIXELS), FLATE + b"/DeviceRGB")
    with opened(pypdf_sandbox, with_pictures(builder, Bare=bare, Empty=empty)) as document:
        images = shown(document)
    assert [(image.width, image.height) for image in images] == [(0, 0), (0, 0)]
    assert all(image.error for image in images)


def test_one_larger_than_the_library_allows_is_reported(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    huge = add_picture(builder, 100_000, 100_000, flat(PIXELS), FLATE + b"/DeviceRGB")
    good = add_picture(builder, 2, 1, flat(PIXELS), FLATE + b"/DeviceRGB")
    with opened(pypdf_sandbox, with_pictures(builder, Huge=huge, Good=good)) as document:
        images = shown(document)
    assert [image.error and image.error["code"] for image in images] == ["memory_exceeded", None]


def test_a_broken_picture_in_the_content_does_not_cost_the_others(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    content = INLINE % (b"/NoSuch", b"00") + INLINE % (b"/G", b"07FA")
    good = add_picture(builder, 2, 1, flat(PIXELS), FLATE + b"/DeviceRGB")
    with opened(pypdf_sandbox, with_pictures(builder, content, Good=good)) as document:
        images = shown(document)
    assert [image.name for image in images] == ["Good.png", "inline1", "inline2.png"]
    assert [image.error is None for image in images] == [True, False, True]


def test_a_picture_without_an_end_is_reported(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    good = add_picture(builder, 2, 1, flat(PIXELS), FLATE + b"/DeviceRGB")
    content = b"q BI /W 2 /H 1 /BPC 8 /CS /G ID no end"
    with opened(pypdf_sandbox, with_pictures(builder, content, Good=good)) as document:
        images = shown(document)
    assert [image.error is None for image in images] == [True, False]


def test_without_pillow_each_says_what_to_install() -> None:
    builder = PdfBuilder()
    one = add_picture(builder, 2, 1, flat(PIXELS), FLATE + b"/DeviceRGB")
    other = add_picture(builder, 2, 1, file_of("JPEG"), BROKEN)
    content = INLINE % (b"/G", b"07FA")
    data = with_pictures(builder, content, One=one, Other=other)
    engine = "pdfpool_django.engines.pypdf"
    with (
        sandbox_of(engine, images=False, memory=PYPDF_MEMORY) as sandbox,
        opened(sandbox, data) as document,
    ):
        images = shown(document)
        assert document.page(1).text() == ""
    assert [image.name for image in images] == ["One", "Other", "inline1"]
    for image in images:
        assert image.error is not None
        assert image.error["code"] == "unsupported"
        assert "pdfpool-django[images]" in image.error["detail"]
        assert (image.width, image.height) == (2, 1)


def test_more_than_the_output_allowed_is_refused_and_the_handle_lives_on(
    pypdf_sandbox: Sandbox,
) -> None:
    builder = PdfBuilder()
    noise = bytes(byte * 7919 % 251 for byte in range(300 * 300 * 3))
    number = add_picture(builder, 300, 300, flat(noise), FLATE + b"/DeviceRGB")
    page = page_of(builder, text_content("text"), xobjects={"Noise": number})
    with opened(pypdf_sandbox, builder.build([page]), max_output=1000) as document:
        with pytest.raises(OutputTooLarge):
            document.page(1).images()
        assert document.page(1).text().strip() == "text"


def test_a_page_without_pictures_has_none(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    with opened(pypdf_sandbox, builder.build([page_of(builder)])) as document:
        assert document.page(1).images() == ()


def test_pictures_that_were_read_do_not_pile_up_in_the_child(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    large = flat(bytes(2000 * 1500))  # three megabytes each: together more than a child may have
    pages = [
        page_of(
            builder,
            xobjects={"Im": add_picture(builder, 2000, 1500, large, FLATE + b"/DeviceGray")},
        )
        for _ in range(PYPDF_MEMORY // (2000 * 1500))
    ]
    children = set()
    with opened(pypdf_sandbox, builder.build(pages), workers=1) as document:
        for number in range(1, document.page_count + 1):
            (image,) = document.page(number).images()
            assert image.error is None
            (reader,) = document._readers._free
            assert reader.session._child is not None
            children.add(reader.session._child.pid)
    assert len(children) == 1
