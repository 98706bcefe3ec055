"""Documents with passwords: nothing of them is told before the right one, and all of it after."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from pdfpool_django.documents import Document
from pdfpool_django.errors import PasswordRequired, WrongPassword
from pdfpool_django.sandbox.host import Sandbox
from scripts.pdf_builder import encrypted_pdf, simple_pdf
from tests.handle_values.opening import opened

ALGORITHMS = ("RC4-40", "RC4-128", "AES-128", "AES-256")
PLAIN = simple_pdf("secret one", "secret two", info={"Title": "Secrets"})
TEXT = "secret one\n\fsecret two\n"

READS: dict[str, Callable[[Document], object]] = {
    "page_count": lambda document: document.page_count,
    "metadata": lambda document: document.metadata(),
    "page": lambda document: document.page(1),
    "text": lambda document: document.text(),
    "text of a page": lambda document: document.text(1),
    "map": lambda document: list(document.map(lambda page: page.text())),
    "map, errors kept": lambda document: list(document.map(lambda page: 1, errors="keep")),
    "outline": lambda document: document.outline(),
    "attachments": lambda document: document.attachments(),
    "permissions": lambda document: document.permissions(),
    "prepare_search": lambda document: document.prepare_search(),
    "search": lambda document: document.search("secret"),
}


def locked(algorithm: str = "AES-256", user: str = "user", owner: str = "owner") -> bytes:
    return encrypted_pdf(PLAIN, user=user, owner=owner, algorithm=algorithm)


@pytest.mark.parametrize("read", READS)
def test_nothing_is_told_before_the_password(pypdf_sandbox: Sandbox, read: str) -> None:
    with opened(pypdf_sandbox, locked()) as document:
        with pytest.raises(PasswordRequired):
            READS[read](document)
        assert document.encrypted
        assert not document.closed


def test_the_reads_above_are_all_there_are() -> None:
    changing = {"open", "authenticate", "clear_search_index", "close"}
    public = {name for name in vars(Document) if not name.startswith("_")}
    assert public - changing == {name.partition(",")[0].partition(" ")[0] for name in READS}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("password", ["user", "owner"])
def test_after_the_password_everything_is_plain_whatever_was_tried_before(
    pypdf_sandbox: Sandbox, algorithm: str, password: str
) -> None:
    with opened(pypdf_sandbox, locked(algorithm)) as document:
        for read in READS.values():
            with pytest.raises(PasswordRequired):
                read(document)
        assert document.authenticate("wrong") is False
        assert document.authenticate(password) is True
        for _ in range(2):
            assert document.text() == TEXT
            assert document.page_count == 2
            assert document.metadata()["title"] == "Secrets"
            assert [match.page for match in document.search("secret")] == [1, 2]
        assert document.encrypted


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("password", ["user", "owner"])
def test_it_is_opened_with_either_password(
    pypdf_sandbox: Sandbox, algorithm: str, password: str
) -> None:
    with opened(pypdf_sandbox, locked(algorithm), password) as document:
        assert document.text() == TEXT
        assert document.encrypted


def test_an_empty_password_is_none(pypdf_sandbox: Sandbox) -> None:
    with opened(pypdf_sandbox, locked(), "") as document, pytest.raises(PasswordRequired):
        document.text()


def test_a_wrong_password_does_not_open_it(pypdf_sandbox: Sandbox) -> None:
    with pytest.raises(WrongPassword), opened(pypdf_sandbox, locked(), "wrong"):
        pass


def test_a_wrong_password_changes_nothing(pypdf_sandbox: Sandbox) -> None:
    with opened(pypdf_sandbox, locked()) as document:
        for wrong in ("wrong", "", "User", "\U0001f600", "x" * 5000):
            assert document.authenticate(wrong) is False
            with pytest.raises(PasswordRequired):
                document.text()
        assert document.authenticate("user") is True
        assert document.authenticate("wrong") is False
        assert document.text() == TEXT
        assert document.search("two")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("given", [None, "whatever"])
def test_an_empty_user_password_opens_it_by_itself(
    pypdf_sandbox: Sandbox, algorithm: str, given: str | None
) -> None:
    with opened(pypdf_sandbox, locked(algorithm, user=""), given) as document:
        assert document.text() == TEXT
        assert document.encrypted


def test_passwords_need_not_be_ascii(pypdf_sandbox: Sandbox) -> None:
    with opened(pypdf_sandbox, locked(user="Größe \u20ac")) as document:
        assert document.authenticate("Grosse") is False
        assert document.authenticate("Größe \u20ac") is True
        assert document.text() == TEXT


def test_a_document_without_a_lock_takes_any_password(pypdf_sandbox: Sandbox) -> None:
    with opened(pypdf_sandbox, PLAIN, "needless") as document:
        assert document.authenticate("another") is True
        assert document.text() == TEXT
        assert not document.encrypted


def test_the_password_is_in_no_text_about_the_handle(pypdf_sandbox: Sandbox) -> None:
    with opened(pypdf_sandbox, locked(user="sesame")) as document:
        document.authenticate("sesame")
        page = document.page(1)
        assert "sesame" not in repr(document) + repr(page) + repr(page.read())
        with pytest.raises(TypeError):
            pickle.dumps(document)
