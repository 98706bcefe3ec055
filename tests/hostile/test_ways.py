"""Hostile files through the view and the command: what they say is clean, and says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from scripts.hostile_builder import KINDS, Kind
from tests.hostile.outcomes import unclean_in
from tests.site.commands import run
from tests.site.web import post_raw

NAMES = (
    "bomb: 180 MB of blanks",
    "bomb: a font that maps its codes again and again",
    "broken: no %%EOF",
    "broken: content with a bracket too much",
    "broken: no PDF but a picture",
    "locked: with a password, AES-256",
    "clean: NUL",
    "clean: a lone surrogate",
    "clean: a title of 150 KB",
    "CJK: KSCms-UHC-H",
    "loop: a tree within itself",
)
CHOSEN = [each for each in KINDS if each.name in NAMES]


def test_all_of_them_are_there() -> None:
    assert {each.name for each in CHOSEN} == set(NAMES)


def check(wanted: Kind, answer: dict[str, Any]) -> None:
    pages = answer.get("pages", [])
    codes = {page["error"]["code"] for page in pages if page["error"]}
    codes |= {answer["code"]} if "code" in answer else set()
    assert bool(wanted.errors & codes) == bool(wanted.errors)
    assert not codes or wanted.errors
    text = "".join(page["text"] for page in pages)
    assert all(part in text for part in wanted.text)
    assert list(unclean_in(answer)) == []


@pytest.mark.django_db
@pytest.mark.parametrize("wanted", CHOSEN, ids=[each.name for each in CHOSEN])
def test_through_the_view(wanted: Kind, client: Client, django_user_model: Any) -> None:
    client.force_login(django_user_model.objects.create_user("reader"))
    response = post_raw(client, wanted.build())
    assert response.status_code < 500
    check(wanted, json.loads(response.content))


@pytest.mark.parametrize("wanted", CHOSEN, ids=[each.name for each in CHOSEN])
def test_through_the_command(wanted: Kind, tmp_path: Path) -> None:
    path = tmp_path / "file.pdf"
    path.write_bytes(wanted.build())
    answer = run(path, "--format", "json", "--no-progress")
    assert answer.status == bool(wanted.errors)
    (said,) = json.loads(answer.out)
    check(wanted, said if "pages" in said else said.get("error", said))
