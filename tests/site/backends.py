"""Backends that are wrong in some way, for the checks."""

from __future__ import annotations

from pdfpool_django.backends.base import BackendConfig, Problem
from pdfpool_django.backends.local import LocalBackend


class CannotBeMade(LocalBackend):
    def __init__(self, config: BackendConfig) -> None:
        raise RuntimeError("no address is known")


class CannotCheckItself(LocalBackend):
    def check(self) -> list[Problem]:
        raise OSError("the address does not answer")


class HasProblemsOfItsOwn(LocalBackend):
    def check(self) -> list[Problem]:
        return [Problem("The moon is full.", "Wait."), Problem("It is red.", "Go.", "moon.E007")]
