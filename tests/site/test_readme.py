"""README.md: its code is run, and its tables are those of the code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import RequestFactory, override_settings
from django.urls import resolve

from pdfpool_django import conf, errors, http
from pdfpool_django.errors import ERROR_CLASSES
from tests.docs_code import ROOT, CodeBlock, code_blocks, run_code
from tests.shelf.models import Report
from tests.site.helpers import LOCKED, SAMPLE, TEXTS
from tests.site.web import assert_problem

PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")
BLOCKS = code_blocks(PAGE)


def block_of(file: str) -> CodeBlock:
    (found,) = [block for block in BLOCKS if block.file == file]
    return found


@pytest.fixture
def media(tmp_path: Path) -> Iterator[None]:
    with override_settings(MEDIA_ROOT=str(tmp_path)):
        yield


@pytest.fixture
def report(db: None, media: None) -> Report:
    return Report.objects.create(file=ContentFile(SAMPLE, "report.pdf"))


def test_it_opens_with_the_two_commands() -> None:
    first, second = re.findall(r"^    (make \w+)", README, re.MULTILINE)[:2]
    assert (first, second) == ("make run", "make test")
    assert README.index(second) < 300


def test_its_settings_name_the_app() -> None:
    names = run_code(block_of("settings.py"))
    assert names["INSTALLED_APPS"] == ["pdfpool_django"]


def test_its_addresses_are_where_it_says() -> None:
    names = run_code(block_of("urls.py"))
    urlconf = ModuleType("of_the_readme")
    urlconf.urlpatterns = names["urlpatterns"]  # type: ignore[attr-defined]
    for path in re.findall(r"`(?:GET|POST)? ?(/pdf/[a-z]*/?)`", README):
        assert resolve(path, urlconf).namespace == "pdfpool"  # type: ignore[arg-type]


def test_its_python_reads_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("report.pdf").write_bytes(SAMPLE)
    blocks = [block for block in BLOCKS if block.file is None]
    assert len(blocks) == 2
    for block in blocks:
        source = block.source.replace('pages="1-3,7"', 'pages="1-3"').replace("total", "second")
        run_code(CodeBlock(block.page, block.line, source))
        out = capsys.readouterr().out
        assert all(text in out for text in TEXTS[1:2])
        assert "not_a_pdf" not in out


def test_its_model_is_the_one_that_is_tested() -> None:
    shown = block_of("models.py").source.partition("\n")[2]
    assert (ROOT / "tests" / "shelf" / "models.py").read_text().endswith(shown)


def test_its_model_keeps_the_text(report: Report) -> None:
    report.read_text()
    report.refresh_from_db()
    assert all(text in report.text for text in TEXTS)
    assert report.problem == ""


def test_its_model_keeps_why_there_is_none(db: None, media: None) -> None:
    report = Report.objects.create(file=ContentFile(LOCKED, "report.pdf"))
    report.read_text()
    report.refresh_from_db()
    assert (report.text, report.problem) == ("", "password_required")


def test_its_view_reads_a_document_of_the_site(report: Report, rf: RequestFactory) -> None:
    view = run_code(block_of("views.py"), {"Report": Report})["ReportTextView"].as_view()
    request = rf.get("/", {"pages": "2"})
    request.user = User.objects.create_user("reader")
    response = view(request, pk=report.pk)
    assert_problem(response, 403, "forbidden")
    request.user = SimpleNamespace(
        pk=1, is_authenticated=True, has_perm=lambda name: name == "reports.view_report"
    )
    response = view(request, pk=report.pk)
    assert [page["text"].strip() for page in json.loads(response.content)["pages"]] == [TEXTS[1]]


class Keys:
    """A manager of keys."""

    def filter(self, key: str) -> Keys:
        self.key = key
        return self

    def first(self) -> Any:
        return SimpleNamespace(pk=7) if self.key == "right" else None


def test_its_keys_name_their_owner(rf: RequestFactory) -> None:
    by_api_key = run_code(block_of("callers.py"), {"ApiKey": SimpleNamespace(objects=Keys())})[
        "by_api_key"
    ]
    assert by_api_key(rf.get("/", headers={"X-Api-Key": "right"})) == "key:7"
    assert by_api_key(rf.get("/", headers={"X-Api-Key": "wrong"})) is None
    assert by_api_key(rf.get("/")) is None
    assert by_api_key.csrf_exempt


def test_its_task_reads_and_tries_again_where_that_may_help(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    celery = pytest.importorskip("celery")
    app = celery.Celery("readme", broker="memory://", set_as_current=True)
    app.conf.update(task_always_eager=True, task_eager_propagates=False)
    names = run_code(block_of("tasks.py"), {"Report": Report})
    names["read_report"].delay(report.pk)
    report.refresh_from_db()
    assert TEXTS[0] in report.text
    tries = []

    def busy_at_first(self: Report) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise errors.Busy(retry_after=0.01)

    monkeypatch.setattr(Report, "read_text", busy_at_first)
    names["read_report"].delay(report.pk)
    assert len(tries) == 3


def test_its_rest_view(rf: RequestFactory, db: None) -> None:
    test = pytest.importorskip("rest_framework.test")
    view = run_code(block_of("api.py"))["ExtractAPIView"].as_view()

    def post(data: bytes | None) -> Any:
        form = {} if data is None else {"file": SimpleUploadedFile("report.pdf", data)}
        request = test.APIRequestFactory().post("/", form, format="multipart")
        test.force_authenticate(request, User(pk=1))
        return view(request)

    assert [page["text"].strip() for page in post(SAMPLE).data["pages"]] == list(TEXTS)
    assert_problem(post(b"hello"), 415, "not_a_pdf")
    assert post(None).status_code == 400


def test_its_ninja_api(db: None) -> None:
    pytest.importorskip("ninja")
    api = run_code(block_of("ninja_api.py"))["api"]
    from ninja.testing import TestClient

    client = TestClient(api)
    user = SimpleNamespace(pk=1)

    def post(data: bytes) -> Any:
        file = SimpleUploadedFile("report.pdf", data)
        return client.post("/extract", FILES={"file": file}, user=user)

    assert [page["text"].strip() for page in post(SAMPLE).json()["pages"]] == list(TEXTS)
    refused = post(b"hello")
    assert (refused.status_code, refused.json()["code"]) == (415, "not_a_pdf")


def test_its_table_has_every_code_with_its_status() -> None:
    told = {}
    for line in re.findall(r"^\| (`.*)$", README, re.MULTILINE):
        codes, status = line.split("|")[:2]
        if status.strip().isdecimal():
            told |= {code: int(status) for code in re.findall(r"`(\w+)`", codes)}
    of_handles = {"closed", "invalid_pattern"}
    sent = {code: http.status_of(cls()) for code, cls in ERROR_CLASSES.items()}
    assert told == {code: status for code, status in sent.items() if code not in of_handles}
    assert all(f"`{code}`" in README for code in of_handles)


def test_it_has_a_heading_and_the_default_for_each_setting() -> None:
    headings = re.findall(r"^### `([A-Z_]+)`\n\n(.*)$", README, re.MULTILINE)
    assert {name for name, _ in headings} == set(conf._SETTINGS)
    for name, sentence in headings:
        default = conf._SETTINGS[name][0]
        if isinstance(default, int) and default > 10_000:
            assert f"{default // 2**20} MiB" in sentence
        elif name != "PYTHON":
            assert str(default) in sentence


def test_every_page_that_it_names_is_there_and_every_page_is_named() -> None:
    named = set(re.findall(r"\((docs/\w+\.md)\)", README))
    assert named == {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
