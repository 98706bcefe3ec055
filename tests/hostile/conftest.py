"""Who posts the files."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def member(db: None, client: Client) -> Client:
    """The browser of a user who has logged in."""
    client.force_login(User.objects.create_user("member"))
    return client
