"""Every sentence for people is in the catalogue, and is said in the language asked for."""

from __future__ import annotations

import gettext
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from django.test import Client
from django.utils import translation

from pdfpool_django import errors, http
from scripts.make_messages import catalogue_of, messages
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
