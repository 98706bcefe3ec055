"""``manage.py create_demo_user``: the example site's user ``demo``."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Make the demo user, or set its password back."""

    help = "Make the user “demo” with the password “demo”."

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        users = get_user_model().objects
        user, _ = users.get_or_create(username="demo")
        user.set_password("demo")
        user.save()
        self.stdout.write("The demo user is “demo”, with the password “demo”.")
