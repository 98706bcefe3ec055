"""Every sentence for people is in the catalogue, and is said in the language asked for."""

from __future__ import annotations

import copy
import dataclasses
import gettext
import json
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from django.test import Client
from django.utils import translation

from pdfpool_django import errors, http
from pdfpool_django.extraction import extract
from scripts.hostile_builder import KINDS
from scripts.make_messages import catalogue_of, messages
from scripts.pdf_builder import simple_pdf
from tests.site.commands import run, write
from tests.site.web import assert_problem, post_form, post_raw, seen, url

PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%%|\{\w+\}")


@pytest.fixture(scope="module")
def german() -> Catalog:
    with catalogue_of("de").open("rb") as file:
        return read_po(file, locale="de")


@pytest.fixture(autouse=True)
def no_language_is_left() -> Iterator[None]:
    """A request that has been answered in this thread leaves its language behind."""
    yield
    translation.deactivate()


def forms(words: Any) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def test_the_catalogue_has_every_sentence_and_no_other(german: Catalog) -> None:
    assert {each.id for each in german if each.id} == {each.id for each in messages() if each.id}


def test_every_sentence_is_translated(german: Catalog) -> None:
    assert [each.id for each in german if each.id and not all(forms(each.string))] == []


def test_a_translation_has_the_placeholders_of_its_sentence(german: Catalog) -> None:
    for each in german:
        if each.id:
            for said in forms(each.string):
                wanted = Counter(PLACEHOLDER.findall(forms(each.id)[-1]))
                assert Counter(PLACEHOLDER.findall(said)) == wanted, each.id


def test_the_compiled_catalogue_is_that_of_the_source(german: Catalog) -> None:
    with catalogue_of("de").with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for each in german:
        if isinstance(each.id, str) and each.id:
            assert compiled.gettext(each.id) == each.string


@pytest.mark.parametrize("cls", errors.ERROR_CLASSES.values(), ids=errors.ERROR_CLASSES)
def test_every_error_is_told_in_german(cls: type[errors.PdfPoolError]) -> None:
    values = dict.fromkeys(("limit", "page", "page_count", "seconds"), 7)
    error = cls(**values, reason="so", reference="12ab")
    with translation.override("de"):
        told = http.problem(error)
    with translation.override("en"):
        english = http.problem(error)
    assert told["title"] != english["title"]
    assert told["detail"] != english["detail"]
    assert told["code"] == cls.code


def test_an_answer_is_in_the_language_that_the_client_likes(client: Client, settings: Any) -> None:
    locale = "django.middleware.locale.LocaleMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, locale]
    settings.USE_I18N = True
    headers = {"Accept-Language": "de"}
    details = assert_problem(post_raw(client, headers=headers), 401, "not_authenticated")
    assert details["detail"].startswith("Melden Sie sich zuerst an")


def test_the_page_for_people_is_in_the_language_that_they_like(
    member: Client, settings: Any
) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]
    html = seen(member.get(url("upload"), headers={"Accept-Language": "de"})).content.decode()
    assert '<html lang="de">' in html
    assert "Text aus einem PDF" in html
    assert "Only if" not in html
    answer = post_form(member, b"hello", view="upload", headers={"Accept-Language": "de"})
    assert "Kein PDF" in answer.content.decode()


# What a result says


def of_kind(name: str) -> bytes:
    return next(each for each in KINDS if each.name == name).build()


SCAN = of_kind("layout: a scan")
BROKEN_PAGE = of_kind("broken: content with an unknown filter beside")
THREE_PAGES = simple_pdf("first", "second", "third")

IN_GERMAN = {"Accept-Language": "de"}
A_SCAN = "Die Seite hat Bilder und keinen Text: ein Scan."
UNREADABLE = "Die Datei braucht etwas, das hier nicht gelesen werden kann ("
NOT_READ = "Die Seite wurde nicht gelesen, da vorher aufgehört wurde; fordern Sie sie allein an."
TOO_MUCH = "Der Text ist größer als die erlaubten 8 Bytes;"


@pytest.fixture
def speaks_german(settings: Any) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]


@pytest.mark.usefixtures("speaks_german")
def test_what_a_result_says_is_in_the_language_that_its_reader_likes(member: Client) -> None:
    scan = post_form(member, SCAN, headers=IN_GERMAN).json()
    assert [each["detail"] for each in scan["pages"][0]["warnings"]] == [A_SCAN]
    broken = post_form(member, BROKEN_PAGE, headers=IN_GERMAN).json()
    assert broken["pages"][0]["error"]["detail"].startswith(UNREADABLE)
    html = post_form(member, BROKEN_PAGE, view="upload", headers=IN_GERMAN).content.decode()
    assert UNREADABLE in html


@pytest.mark.usefixtures("speaks_german")
def test_what_lines_say_is_in_the_language_that_their_reader_likes(
    member: Client, settings: Any
) -> None:
    settings.PDFPOOL = {"MAX_OUTPUT": 8}
    headers = {**IN_GERMAN, "Accept": "application/x-ndjson"}
    answer = post_form(member, THREE_PAGES, headers=headers)
    _, first, second, third, end = map(json.loads, b"".join(answer).splitlines())
    assert first["error"] is None
    assert second["error"]["detail"].startswith(TOO_MUCH)
    assert third["error"] == {"code": "not_attempted", "detail": NOT_READ}
    assert end["error"]["detail"].startswith(TOO_MUCH)


def test_what_a_document_that_cannot_be_opened_is_told_is_translated() -> None:
    with pytest.raises(errors.InvalidPdf) as caught:
        extract(b"%PDF-1.7 and words", caller="a reader")
    english = str(caught.value)
    with translation.override("de"):
        told = http.detail_of(caught.value)
    assert told.startswith("Die Datei ist ein beschädigtes PDF (")
    assert caught.value.params["reason"] in told
    assert caught.value.params["reason"] in english


@pytest.mark.parametrize("form", ["text", "ndjson", "json"])
def test_the_command_says_it_in_the_language_of_the_site(tmp_path: Path, form: str) -> None:
    path = write(tmp_path, "broken.pdf", BROKEN_PAGE)
    with translation.override("de"):
        answer = run(path, "--format", form)
    assert UNREADABLE in answer.err
    assert form == "text" or UNREADABLE in answer.out


def test_what_a_result_says_to_python_callers_is_english_and_plain() -> None:
    with translation.override("de"):
        extraction = extract(BROKEN_PAGE, caller="a reader")
        german = http.localized(extraction)
    (page,) = extraction.pages
    assert page.error is not None
    assert german.pages[0].error is not None
    assert german.pages[0].error["code"] == page.error["code"]
    assert page.error["detail"].startswith("The file needs a feature")
    assert json.loads(json.dumps(extraction.as_dict())) == extraction.as_dict()
    copies = (copy.deepcopy(extraction), pickle.loads(pickle.dumps(extraction)))
    assert copies == (extraction, extraction)
    assert [http.localized(each).pages for each in copies] == [extraction.pages] * 2
    with translation.override("de"):
        assert [http.localized(each) for each in copies] == [german, german]
    assert dataclasses.asdict(extraction)["pages"][0]["error"] == page.error
