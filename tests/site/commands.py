"""Running ``extract_pdf`` in this process."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command

from scripts.pdf_builder import simple_pdf


@dataclass(frozen=True)
class Answer:
    """What a command wrote, and how it ended."""

    out: str
    err: str
    status: int
    message: str

    @property
    def pages(self) -> list[str]:
        return [page.strip() for page in self.out.split("\f")]


def run(*arguments: Any, **options: Any) -> Answer:
    out, err = (options.get(name) or io.StringIO() for name in ("stdout", "stderr"))
    status, message = 0, ""
    try:
        call_command("extract_pdf", *map(str, arguments), stdout=out, stderr=err)
    except CommandError as error:
        status, message = error.returncode, str(error)
    said = [each.getvalue() if isinstance(each, io.StringIO) else "" for each in (out, err)]
    return Answer(*said, status, message)


def write(folder: Path, name: str, data: bytes | None = None) -> Path:
    """Write a document; without data, one whose text is its name."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(simple_pdf(f"text of {name}") if data is None else data)
    return path
