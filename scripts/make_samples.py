"""Write the PDF files that the project bundles: ``python -m scripts.make_samples``.

The locked ones differ at every run, as encryption is seeded anew.
"""

from __future__ import annotations

from pathlib import Path

from scripts.pdf_builder import (
    FONT,
    PdfBuilder,
    encrypted_pdf,
    page_entries,
    simple_pdf,
    text_content,
)

ROOT = Path(__file__).resolve().parent.parent
WARM = ROOT / "pdfpool_django" / "engines" / "warm"
SAMPLES = ROOT / "example_project" / "samples"

TO_UNICODE = b"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap
/CMapName /Sample def /CMapType 2 def
1 begincodespacerange <0000> <FFFF> endcodespacerange
2 beginbfchar <0041> <0391> <0042> <D83DDE00> endbfchar
1 beginbfrange <0043> <0045> <0393> endbfrange
endcmap end end"""

INVOICE = """\
Invoice 4711

Two chairs, oak        180.00 EUR
One table, oak         420.00 EUR

Total                  600.00 EUR"""

TERMS = """\
Terms

Payment is due within thirty days (net).
Goods stay the seller's until they are paid.
Please name the invoice number with your payment."""

CARE = """\
How to care for oak

Wipe with a damp cloth; never use solvents.
Oil once a year: thin, and along the grain.
Keep away from heaters, as dry air makes wood crack."""


def composite_font(builder: PdfBuilder, encoding: bytes, ordering: bytes, extra: bytes) -> bytes:
    """Return a Type 0 font (ISO 32000-2, 9.7) that is not embedded."""
    system = b"<< /Registry (Adobe) /Ordering (%s) /Supplement 0 >>" % ordering
    descendant = builder.add(
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Sample /CIDSystemInfo %s"
        b" /DW 1000 /W [1 [500 600]] >>" % system
    )
    return b"<< /Type /Font /Subtype /Type0 /BaseFont /Sample /Encoding %s" % encoding + (
        b" /DescendantFonts [%d 0 R] %s >>" % (descendant, extra)
    )


def warm_plain() -> bytes:
    """Return a file that uses what documents use: encodings, CMaps, forms, labels, metadata."""
    builder = PdfBuilder()
    builder.catalog_entries = b"/PageLabels << /Nums [0 << /S /r >> 1 << /S /D /P (A-) >>] >>"
    builder.info = builder.add(b"<< /Title (Sample) /CreationDate (D:20250102030405+01'00') >>")
    cmap = builder.add_stream(TO_UNICODE)
    fonts = [
        (FONT, text_content("Plain text, with “quotes” and €")),
        (FONT.replace(b"WinAnsi", b"MacRoman"), b"BT /F1 12 Tf 72 700 Td [(A\x8a) -300 (B)] TJ ET"),
        (
            b"<< /Type /Font /Subtype /TrueType /BaseFont /Arial /FirstChar 32 /LastChar 34"
            b" /Widths [250 300 350] /Encoding << /Differences [65 /Euro /fi /uni0416] >> >>",
            b"BT /F1 12 Tf 1 0 0 1 72 700 Tm (ABC) Tj 0 -14 TD (AB) ' ET",
        ),
    ]
    composites = [
        (b"/Identity-H", b"Identity", b"/ToUnicode %d 0 R" % cmap, b"<00410042004300440045>"),
        (b"/UniJIS-UTF16-H", b"Japan1", b"", b"<65E5672C8A9E>"),
        (b"/UniGB-UCS2-H", b"GB1", b"", b"<4E2D6587>"),
        (b"/GBK-EUC-H", b"GB1", b"", b"<D6D0CEC4>"),
        (b"/90ms-RKSJ-H", b"Japan1", b"", b"<93FA967B>"),
        (b"/ETen-B5-H", b"CNS1", b"", b"<A4A4A4E5>"),
        (b"/KSCms-UHC-H", b"Korea1", b"", b"<C7D1B1DB>"),
    ]
    for encoding, ordering, extra, shown in composites:
        font = composite_font(builder, encoding, ordering, extra)
        fonts.append((font, b"BT /F1 12 Tf 72 700 Td %s Tj ET" % shown))
    form = builder.add_stream(
        text_content("Text of a form"),
        b"/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources << /Font << /F1 %s >> >>"
        % FONT,
    )
    pages = [page_entries(builder, content, font) for font, content in fonts]
    stream = builder.add_stream(b"q /X1 Do Q BI /W 1 /H 1 /BPC 8 /CS /G ID \x00 EI")
    pages.append(
        b"/MediaBox [0 0 595 842] /Contents %d 0 R /Resources << /XObject << /X1 %d 0 R >> >>"
        % (stream, form)
    )
    return builder.build(pages)


def warm_small() -> bytes:
    """Return what each child reads while it waits: enough to touch what most documents touch."""
    line = "The quick brown fox jumps over the lazy dog, and %d of its friends."
    info = {"Title": "Small", "CreationDate": "D:20260101120000Z"}
    return simple_pdf("\n".join(line % number for number in range(8)), info=info)


def main() -> None:
    """Write every bundled file."""
    WARM.mkdir(exist_ok=True)
    SAMPLES.mkdir(exist_ok=True)
    plain = warm_plain()
    small = simple_pdf("Locked text")
    (WARM / "plain.pdf").write_bytes(plain)
    (WARM / "small.pdf").write_bytes(warm_small())
    for name, algorithm in (("aes.pdf", "AES-256"), ("rc4.pdf", "RC4-128")):
        locked = encrypted_pdf(small, user="", owner="owner", algorithm=algorithm)
        (WARM / name).write_bytes(locked)
    invoice = simple_pdf(
        INVOICE,
        TERMS,
        CARE,
        info={"Title": "Invoice 4711"},
        catalog=b"/PageLabels << /Nums [0 << /S /D >> 1 << /S /D /P (T-) >>] >>",
    )
    (SAMPLES / "invoice.pdf").write_bytes(invoice)


if __name__ == "__main__":
    main()
