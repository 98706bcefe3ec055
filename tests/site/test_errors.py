"""Errors as values, as data, and as responses."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from pdfpool_django import errors, http
from pdfpool_django.errors import PdfPoolError, from_data

PARAMS = {
    "limit": 7,
    "reason": "no “trailer” at 100%",
    "page": 9,
    "page_count": 3,
    "seconds": 0.5,
}

TABLE = {
    "busy": (503, True),
    "caller_busy": (429, True),
    "unavailable": (503, True),
    "not_authenticated": (401, False),
    "forbidden": (403, False),
    "invalid_request": (400, False),
    "file_too_large": (413, False),
    "not_a_pdf": (415, False),
    "invalid_pdf": (422, False),
    "password_required": (422, False),
    "wrong_password": (422, False),
    "unsupported": (422, False),
    "page_out_of_range": (422, False),
    "too_many_pages": (422, False),
    "output_too_large": (422, False),
    "memory_exceeded": (422, False),
    "crashed": (422, False),
    "deadline_exceeded": (422, False),
    "internal_error": (500, False),
}
OF_A_HANDLE_ONLY = {"closed", "invalid_pattern"}


def subclasses(cls: type[PdfPoolError]) -> Iterator[type[PdfPoolError]]:
    for each in cls.__subclasses__():
        yield each
        yield from subclasses(each)


CLASSES = sorted(set(subclasses(PdfPoolError)), key=lambda cls: cls.code)
every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.code)


def make(cls: type[PdfPoolError], **options: Any) -> PdfPoolError:
    return cls(**options, **PARAMS)


def body_of(error: PdfPoolError) -> Any:
    return json.loads(http.problem_response(error).content)


# The table


def test_every_code_of_the_design_has_a_class_and_no_other() -> None:
    assert {cls.code for cls in CLASSES} == set(TABLE) | OF_A_HANDLE_ONLY


@every_class
def test_a_class_is_named_for_its_code(cls: type[PdfPoolError]) -> None:
    assert cls.__name__ == cls.code.title().replace("_", "")
    assert errors.ERROR_CLASSES[cls.code] is cls


@every_class
def test_no_class_lacks_a_response(cls: type[PdfPoolError]) -> None:
    response = http.problem_response(make(cls))
    assert response.status_code == http.status_of(make(cls))
    assert body_of(make(cls))["title"]


@pytest.mark.parametrize(("code", "row"), TABLE.items(), ids=TABLE)
def test_status_and_retry_after_are_those_of_the_table(code: str, row: tuple[int, bool]) -> None:
    response = http.problem_response(make(errors.ERROR_CLASSES[code]))
    assert (response.status_code, response.has_header("Retry-After")) == row


# As responses


@every_class
def test_problem_details_have_their_fields_and_media_type(cls: type[PdfPoolError]) -> None:
    error = make(cls)
    response = http.problem_response(error)
    assert response["Content-Type"] == "application/problem+json"
    assert response["Cache-Control"] == "no-store"
    fields = {"type", "title", "status", "detail", "code", "retryable"}
    details = body_of(error)
    fields |= {"retry_after"} if cls.retryable else set()
    fields |= {"reference"} if cls is errors.InternalError else set()
    assert set(details) == fields
    assert details["type"] == f"urn:pdfpool:error:{cls.code}"
    assert details["status"] == response.status_code
    assert details["detail"] == str(error)
    assert details["code"] == cls.code
    assert details["retryable"] is cls.retryable


@every_class
def test_a_sentence_is_whole_and_says_something(cls: type[PdfPoolError]) -> None:
    sentence = str(make(cls))
    assert sentence.endswith(".")
    assert "%(" not in sentence
    assert "%%" not in sentence


@pytest.mark.parametrize(
    ("seconds", "sent"), [(None, 1), (0, 1), (0.2, 1), (1, 1), (1.01, 2), (60.5, 61), (-5, 1)]
)
def test_retry_after_is_whole_seconds_of_at_least_one(seconds: float | None, sent: int) -> None:
    error = errors.Busy(retry_after=seconds)
    assert http.problem_response(error)["Retry-After"] == str(sent)
    assert body_of(error)["retry_after"] == sent


def test_only_who_is_not_logged_in_is_told_how_to() -> None:
    response = http.problem_response(errors.NotAuthenticated())
    assert response["WWW-Authenticate"] == 'Session realm="pdfpool", login="/accounts/login/"'
    assert not http.problem_response(errors.Forbidden()).has_header("WWW-Authenticate")


@override_settings(LOGIN_URL='/in"\r\nX: y/')
def test_a_hostile_login_address_breaks_no_header() -> None:
    header = http.problem_response(errors.NotAuthenticated())["WWW-Authenticate"]
    assert header == 'Session realm="pdfpool", login="/in%22%0D%0AX:%20y/"'


def test_the_edge_translates_the_template_and_then_fills_it_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    german = {errors.FileTooLarge.default_template: "Nur %(limit)d.", "File too large": "Zu groß"}
    monkeypatch.setattr(http, "gettext", german.__getitem__)
    details = body_of(errors.FileTooLarge(limit=7))
    assert (details["title"], details["detail"]) == ("Zu groß", "Nur 7.")


# As values


@every_class
def test_a_copy_keeps_type_and_params(cls: type[PdfPoolError]) -> None:
    error = make(cls, retry_after=2.5)
    assert_same(copy.copy(error), error)


@every_class
def test_an_error_without_parameters_has_a_sentence(cls: type[PdfPoolError]) -> None:
    error = cls()
    assert str(error).endswith(".")
    assert body_of(error)["detail"] == str(error)
    assert_same(from_data(error.as_data()), error)


@every_class
def test_an_error_can_be_pickled(cls: type[PdfPoolError]) -> None:
    error = make(cls, retry_after=2.5)
    assert_same(pickle.loads(pickle.dumps(error)), error)


@every_class
def test_an_error_travels_as_json(cls: type[PdfPoolError]) -> None:
    error = make(cls, retry_after=2.5)
    assert_same(from_data(json.loads(json.dumps(error.as_data()))), error)


def assert_same(clone: PdfPoolError, error: PdfPoolError) -> None:
    assert type(clone) is type(error)
    assert clone is not error
    assert clone.as_data() == error.as_data()
    assert str(clone) == str(error)
    assert clone.args == error.args or clone.args == (error.template,)


def test_a_template_of_its_own_travels_too() -> None:
    error = errors.InvalidRequest("Only %(count)d, please.", count=2)
    assert str(error) == "Only 2, please."
    assert_same(from_data(error.as_data()), error)
    assert_same(copy.copy(error), error)
    assert error.as_error() == {"code": "invalid_request", "detail": "Only 2, please."}


def data(**changes: Any) -> dict[str, Any]:
    return {**errors.FileTooLarge(limit=7).as_data(), **changes}


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"code": "no_such_code"}, KeyError),
        ({"template": 7}, TypeError),
        ({"template": "x" * 1001}, ValueError),
        ({"template": "two\nlines"}, ValueError),
        ({"template": "%(limit)999999999d"}, ValueError),
        ({"template": "%(limit)x"}, ValueError),
        ({"template": "%s"}, ValueError),
        ({"template": "%(other)s"}, KeyError),
        ({"params": []}, TypeError),
        ({"params": {"limit": "many"}}, TypeError),
        ({"params": {"limit": [1]}}, TypeError),
        ({"params": {"limit": float("inf")}}, ValueError),
        ({"retry_after": {}}, TypeError),
    ],
)
def test_data_that_describes_no_error_is_refused(
    wrong: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        from_data(data(**wrong))


@pytest.mark.parametrize("missing", ["code", "template", "params", "retry_after"])
def test_incomplete_data_is_refused(missing: str) -> None:
    incomplete = data()
    del incomplete[missing]
    with pytest.raises(KeyError):
        from_data(incomplete)


def test_text_in_data_is_bounded_and_clean() -> None:
    error = errors.InvalidPdf(reason="a\x00b" + "c" * 5000).as_data()
    reason = from_data(error).params["reason"]
    assert reason.startswith("abc")
    assert len(reason) <= 2000
