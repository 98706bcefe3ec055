"""Documents that are read by children: sessions about one, and what is built of them."""

from __future__ import annotations

from pdfpool_django.documents.budget import MAX_LOST_PAGES, Budget
from pdfpool_django.documents.handle import Document
from pdfpool_django.documents.pages import DocumentPage
from pdfpool_django.documents.reading import read
from pdfpool_django.documents.session import NOT_ATTEMPTED, Session, Stopped
from pdfpool_django.documents.values import (
    Attachment,
    Font,
    Image,
    Match,
    Matches,
    OutlineItem,
    PageSize,
    Permissions,
)

__all__ = [
    "MAX_LOST_PAGES",
    "NOT_ATTEMPTED",
    "Attachment",
    "Budget",
    "Document",
    "DocumentPage",
    "Font",
    "Image",
    "Match",
    "Matches",
    "OutlineItem",
    "PageSize",
    "Permissions",
    "Session",
    "Stopped",
    "read",
]
