"""A new Django project in a new environment, made as the README tells."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LIMIT = 300.0
"""Seconds for one step; installing takes longest."""

_ADDRESS = re.compile(r"development server at (http://[\d.:]+)/")


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a program to its end, and return what it printed, complaints included."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=clean_environment() | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


def pip(*arguments: str | Path, cwd: Path) -> str:
    return run(sys.executable, "-m", "pip", *arguments, cwd=cwd)


def clean_environment() -> dict[str, str]:
    """Return the environment without what leads to this checkout or its settings."""
    ours = ("PYTHON", "DJANGO", "VIRTUAL_ENV", "COV", "PYTEST")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


class Project:
    """A project that has nothing but what was installed for it."""

    def __init__(self, folder: Path, package: Path) -> None:
        """Make the environment, and install the package in it."""
        self.folder = folder / "site"
        self.folder.mkdir()
        self._bin = folder / "venv" / "bin"
        run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
        pip("--python", self._bin / "python", "install", "--quiet", package, cwd=folder)

    def start(self) -> None:
        """Make the project, add the app and its addresses, and have a user."""
        run(self._bin / "django-admin", "startproject", "new", ".", cwd=self.folder)
        self._edit("settings.py", "INSTALLED_APPS = [", 'INSTALLED_APPS = [\n    "pdfpool_django",')
        include = 'path("pdf/", include("pdfpool_django.urls"))'
        self._edit("urls.py", "import path", "import include, path")
        self._edit("urls.py", "urlpatterns = [", f"urlpatterns = [\n    {include},")
        self.manage("migrate", "--verbosity", "0")
        user = ["--noinput", "--username", "ann", "--email", "ann@example.org"]
        self.manage("createsuperuser", *user, DJANGO_SUPERUSER_PASSWORD="a long password")

    def _edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / "new" / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")

    def manage(self, *arguments: str | Path, **variables: str) -> str:
        return run(self._bin / "python", "manage.py", *arguments, cwd=self.folder, **variables)

    def python(self, program: str) -> str:
        return run(self._bin / "python", "-c", program, cwd=self.folder)

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        """Serve the project, and give its address."""
        command = [str(self._bin / "python"), "manage.py", "runserver", "--noreload", "127.0.0.1:0"]
        log = self.folder / "server.log"
        with log.open("wb") as errors:
            server = subprocess.Popen(
                command,
                cwd=self.folder,
                env=clean_environment() | {"PYTHONUNBUFFERED": "1"},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert server.stdout
        with server:
            try:
                said = "".join(_lines_until(server.stdout, _ADDRESS))
                address = _ADDRESS.search(said)
                assert address, said + log.read_text(encoding="utf-8")
                yield address[1]
            finally:
                server.terminate()


def _lines_until(lines: Iterator[str], wanted: re.Pattern[str]) -> Iterator[str]:
    """Yield lines up to the one that has what is wanted."""
    for line in lines:
        yield line
        if wanted.search(line):
            return
