"""A large upload is in a file without a name, so that a killed process leaves none behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.files.uploadhandler import FileUploadHandler
from django.test import Client

from tests.site.helpers import SAMPLE
from tests.site.web import post_form, texts

SEEN: list[list[str]] = []


class Looks(FileUploadHandler):
    """Lists the folder of temporary files while a file arrives."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        SEEN.append(os.listdir(str(django_settings.FILE_UPLOAD_TEMP_DIR)))
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 10
    settings.FILE_UPLOAD_HANDLERS = [
        f"{__name__}.Looks",
        "django.core.files.uploadhandler.MemoryFileUploadHandler",
        "django.core.files.uploadhandler.TemporaryFileUploadHandler",
    ]
    SEEN.clear()
    return tmp_path


@pytest.mark.django_db
def test_its_folder_is_empty_while_it_arrives(
    folder: Path, client: Client, django_user_model: Any
) -> None:
    client.force_login(django_user_model.objects.create_user("reader"))
    response = post_form(client, SAMPLE)
    assert response.status_code == 200, response.content
    assert texts(response)
    assert SEEN
    assert [names for names in SEEN if names] == []
    assert os.listdir(folder) == []
