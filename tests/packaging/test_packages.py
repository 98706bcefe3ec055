"""The wheel and the sdist: complete, and enough for a new project in a new environment."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest
import requests
from packaging.metadata import Metadata

from scripts.pdf_builder import simple_pdf
from tests.packaging.project import Project, clean_environment, run

pytestmark = [pytest.mark.network, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "pdfpool_django"
NOT_SOURCES = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "build", "dist", "mutants", "node_modules", "*.sqlite3"
)
TEXT = "The text of a page"


@dataclass(frozen=True)
class Packages:
    """What was built, and of what."""

    sources: Path
    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A package index that answers."""
    folder = tmp_path_factory.mktemp("download")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "setuptools>=77"]
    found = subprocess.run(
        command, cwd=folder, env=clean_environment(), capture_output=True, text=True
    )
    if found.returncode:
        reason = found.stderr.strip().rpartition("\n")[2]
        pytest.skip(f"no package index can be reached: {reason}")


@pytest.fixture(scope="module")
def packages(network: None, tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Both, built of a copy of the sources: the sdist of that, and the wheel of the sdist."""
    sources = tmp_path_factory.mktemp("build") / "sources"
    shutil.copytree(ROOT, sources, ignore=NOT_SOURCES)
    said = run(
        sys.executable, "-m", "build", "--outdir", sources / "made", sources, cwd=ROOT.parent
    )
    assert "absent from the `packages` configuration" not in said
    (sdist,) = (sources / "made").glob("*.tar.gz")
    (wheel,) = (sources / "made").glob("*.whl")
    return Packages(sources, sdist, wheel)


def files_in_wheel(packages: Packages) -> dict[str, bytes]:
    with zipfile.ZipFile(packages.wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def files_in_sdist(packages: Packages) -> set[str]:
    with tarfile.open(packages.sdist) as archive:
        names = (info.name.partition("/")[2] for info in archive if info.isfile())
        return set(names)


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder.parent)) for path in folder.rglob("*") if path.is_file()}


def test_the_wheel_has_all_of_the_package_and_nothing_else(packages: Packages) -> None:
    files = files_in_wheel(packages)
    described = {name for name in files if ".dist-info/" in name}
    assert set(files) - described == files_of(packages.sources / PACKAGE)
    for needed in ("py.typed", "engines/warm/aes.pdf", "locale/de/LC_MESSAGES/django.mo"):
        assert f"{PACKAGE}/{needed}" in files
    assert [name for name in described if name.endswith("licenses/LICENSE")]


def test_the_sdist_has_what_the_wheel_is_built_of_and_no_tests(packages: Packages) -> None:
    files = files_in_sdist(packages)
    assert files >= files_of(packages.sources / PACKAGE)
    assert files >= {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "setup.cfg"}
    assert files >= {f"docs/{path.name}" for path in (packages.sources / "docs").glob("*.md")}
    tops = {name.partition("/")[0] for name in files if "/" in name}
    assert tops == {PACKAGE, "docs", f"{PACKAGE}.egg-info"}


def test_the_metadata_is_valid_and_has_the_readme(packages: Packages) -> None:
    (data,) = (each for name, each in files_in_wheel(packages).items() if name.endswith("METADATA"))
    metadata = Metadata.from_email(data)  # which checks it as the index does
    assert metadata.name == "pdfpool-django"
    assert metadata.license_expression == "BSD-3-Clause"
    assert metadata.description_content_type == "text/markdown"
    readme = (packages.sources / "README.md").read_text(encoding="utf-8")
    assert metadata.description is not None
    assert metadata.description.strip() == readme.strip()
    assert "Home-page" not in BytesParser().parsebytes(data)


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def project(
    request: pytest.FixtureRequest, packages: Packages, tmp_path_factory: pytest.TempPathFactory
) -> Project:
    """A new project that has one of them installed."""
    project = Project(tmp_path_factory.mktemp(request.param), getattr(packages, request.param))
    project.start()
    return project


def test_it_is_used_as_installed(project: Project) -> None:
    path = project.python(f"import {PACKAGE}; print({PACKAGE}.__file__)").strip()
    assert Path(path).is_relative_to(project.folder.parent / "venv")


def test_the_check_has_nothing_to_say(project: Project) -> None:
    assert "no issues" in project.manage("check", "--fail-level", "WARNING")


def test_the_command_reads_a_document(project: Project) -> None:
    path = project.folder / "a.pdf"
    path.write_bytes(simple_pdf(TEXT))
    assert project.manage("extract_pdf", path).strip() == TEXT


def test_a_user_who_has_logged_in_posts_a_document(project: Project) -> None:
    with project.serving() as address, requests.Session() as browser:
        browser.trust_env = False
        log_in(browser, address)
        page = browser.get(f"{address}/pdf/")
        assert page.status_code == 200
        style = browser.get(f"{address}/static/{PACKAGE}/pdfpool.css")
        assert style.headers["Content-Type"].startswith("text/css")
        answer = post(browser, f"{address}/pdf/extract/", files={"file": simple_pdf(TEXT)})
    assert answer.status_code == 200, answer.text
    (page_read,) = answer.json()["pages"]
    assert page_read["text"].strip() == TEXT


def test_its_testing_backend_is_there(project: Project) -> None:
    program = (
        "import os, json, django\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'new.settings'\n"
        "django.setup()\n"
        "from pdfpool_django.extraction import extract\n"
        "from pdfpool_django.testing import canned\n"
        "with canned(text='told'):\n"
        "    print(json.dumps(extract(b'%PDF-', caller='a').as_dict()))"
    )
    assert json.loads(project.python(program))["pages"][0]["text"] == "told"


def log_in(browser: requests.Session, address: str) -> None:
    login = f"{address}/admin/login/"
    browser.get(login)
    answer = post(browser, login, data={"username": "ann", "password": "a long password"})
    assert "sessionid" in browser.cookies, answer.text


def post(browser: requests.Session, address: str, **body: Any) -> requests.Response:
    """Send a form as its page does, with the token that came in the cookie."""
    token = browser.cookies["csrftoken"]
    return browser.post(address, headers={"X-CSRFToken": token, "Referer": address}, **body)
