"""A site changes the pages block by block, or takes the drop zone into a page of its own."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.test import Client, override_settings
from django.urls import include, path, reverse

from pdfpool_django.forms import UploadForm
from tests.site.web import post_form, url

ROOT = Path(__file__).resolve().parent.parent.parent

Write = Callable[[str, str], None]


def mine(request: HttpRequest) -> HttpResponse:
    return render(request, "mine.html", {"form": UploadForm()})


urlpatterns = [
    path("mine/", mine, name="mine"),
    path("pdf/", include("pdfpool_django.urls")),
]


@pytest.fixture
def write(tmp_path: Path, settings: Any) -> Write:
    """Write a template of the site's, which is found before those of the apps."""
    templates = copy.deepcopy(site_settings.TEMPLATES)
    templates[0]["DIRS"] = [str(tmp_path)]
    settings.TEMPLATES = templates

    def write(name: str, source: str) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source, encoding="utf-8")

    return write


def test_a_block_is_changed_and_the_others_stay(member: Client, write: Write) -> None:
    write(
        "pdfpool_django/upload.html",
        '{% extends "pdfpool_django/upload.html" %}'
        "{% block title %}Reading room{% endblock %}"
        "{% block problem %}{{ block.super }}<p>Ask at the desk.</p>{% endblock %}",
    )
    page = member.get(url("upload")).content.decode()
    assert "<title>Reading room</title>" in page
    assert "<p>Ask at the desk.</p>" in page
    assert 'class="dropzone"' in page
    assert "upload.js" in page
    result = post_form(member, view="upload").content.decode()
    assert "<p>Ask at the desk.</p>" in result
    assert "<pre>" in result


@pytest.mark.parametrize("view", ["upload", "status"])
def test_the_pages_take_the_frame_of_the_site(
    admin_client: Client, write: Write, view: str
) -> None:
    write(
        "pdfpool_django/base.html",
        "<body class=mine>{% block script %}{% endblock %}{% block content %}{% endblock %}",
    )
    page = admin_client.get(url(view), headers={"Accept": "text/html"}).content.decode()
    assert page.startswith("<body class=mine>")
    assert "<h1>" in page
    assert f"{view}.js" in page


@override_settings(ROOT_URLCONF=__name__)
def test_the_drop_zone_stands_in_a_page_of_the_site(member: Client, write: Write) -> None:
    write("mine.html", '<h1>Mine</h1>{% include "pdfpool_django/dropzone.html" %}')
    page = member.get(reverse("mine")).content.decode()
    assert page.startswith("<h1>Mine</h1>")
    for address in ("upload", "extract", "health"):
        assert f'"{reverse(f"pdfpool:{address}")}"' in page
    assert "csrfmiddlewaretoken" in page


@pytest.mark.parametrize("name", ["pdfpool.css", "upload.js", "status.js"])
def test_what_such_a_page_needs_is_a_static_file(name: str) -> None:
    assert finders.find(f"pdfpool_django/{name}")


@pytest.mark.parametrize("name", ["base", "upload", "status"])
def test_the_documentation_names_every_block(name: str) -> None:
    docs = (ROOT / "docs" / "pages.md").read_text(encoding="utf-8")
    (row,) = [line for line in docs.splitlines() if line.startswith(f"| `pdfpool_django/{name}")]
    template = ROOT / "pdfpool_django" / "templates" / "pdfpool_django" / f"{name}.html"
    blocks = set(re.findall(r"{% block (\w+)", template.read_text(encoding="utf-8")))
    inherited = {"title", "style", "script", "head", "content"}
    assert blocks - inherited == set(re.findall(r"`(\w+)`", row)) - inherited
    assert inherited <= blocks or "those" in row
