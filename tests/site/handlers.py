"""Upload handlers that watch what a request may have done with its file."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadhandler import FileUploadHandler

parsed: list[str] = []
"""Names of the files of forms that have been parsed."""


class Recording(FileUploadHandler):
    """Keeps the name of each file, and hands everything on."""

    def new_file(self, field_name: str, file_name: str, *args: Any, **kwargs: Any) -> None:
        parsed.append(file_name)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None
