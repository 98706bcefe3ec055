"""A view that forks, and tells what became of the forked process and its launcher."""

from __future__ import annotations

import atexit
import json
import os
import select
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.urls import path

from example_project.urls import urlpatterns as example_urlpatterns
from pdfpool_django import runtime
from pdfpool_django.extraction import extract
from tests.server.scenario import OURS_LIMIT, script


def leave() -> dict[str, Any]:
    """End as an interpreter does, with what was registered for its end."""
    atexit._run_exitfuncs()
    return {}


def read() -> dict[str, Any]:
    text = extract(script("read in a forked process"), caller="forked").text
    return {"text": text, "launcher": runtime.state().details["launcher_pid"]}


TASKS: dict[str, Callable[[], dict[str, Any]]] = {"exit": dict, "leave": leave, "read": read}


def in_forked(task: Callable[[], dict[str, Any]], answers: int, may_end: int) -> None:
    try:
        os.write(answers, json.dumps(task()).encode())
        os.close(answers)
        os.read(may_end, 1)
    finally:
        os._exit(0)


def ends_in_time(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    ended = bool(poll.poll(OURS_LIMIT * 1000))
    os.close(pidfd)
    return ended


def fork(request: HttpRequest, task: str) -> JsonResponse:
    answers, answering = os.pipe()
    may_end, ending = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ending)
        in_forked(TASKS[task], answering, may_end)
    os.close(answering)
    os.close(may_end)
    with os.fdopen(answers, "rb") as pipe:
        answer = json.loads(pipe.read())
    launcher = answer.pop("launcher", None)
    pidfd = None if launcher is None else os.pidfd_open(launcher)
    os.close(ending)
    os.waitpid(pid, 0)
    return JsonResponse(answer | {"nothing_left": pidfd is None or ends_in_time(pidfd)})


urlpatterns = [*example_urlpatterns, path("fork/<str:task>/", fork)]
