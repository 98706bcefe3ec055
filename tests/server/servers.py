"""The servers that the example site must run under."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

WSGI = "example_project.wsgi:application"
ASGI = "example_project.asgi:application"


@dataclass(frozen=True)
class Server:
    """A way to serve the site on a socket that is handed down."""

    name: str
    arguments: tuple[str, ...]
    levels_above: int = 1
    """Processes between the one that is started and the one that serves."""
    shares: bool = True
    """Whether one process serves several requests at once."""
    outlives_jobs: bool = True
    """Whether the process can end while a job runs, with nobody there to kill it."""
    settings: str = "tests.server.settings"
    """The site that it serves."""

    def command(self, fd: int) -> list[str]:
        return [argument.format(fd=fd) for argument in self.arguments]

    def __str__(self) -> str:
        return self.name


_MODULE = ("-m", "gunicorn")
_CONFIGURED = ("--config", "example_project/gunicorn.conf.py", "--bind", "fd://{fd}")

GUNICORN = Server("gunicorn", (*_MODULE, *_CONFIGURED))

UVICORN = Server(
    "uvicorn",
    ("-m", "uvicorn", "--fd", "{fd}", "--timeout-graceful-shutdown", "1", ASGI),
    levels_above=0,
)


# Its worker patches after the fork: too late for a Django that was imported before it.
_GEVENT = ("-m", "gevent.monkey", "--module", "gunicorn")


def gunicorn(worker_class: str, *options: str) -> Server:
    """Serve by one of gunicorn's kinds of worker."""
    # With more threads, gunicorn takes "sync" for "gthread".
    threads = "16" if worker_class == "gthread" else "1"
    return Server(
        " ".join([worker_class, *options]),
        (
            *(_GEVENT if worker_class == "gevent" and "--preload" in options else _MODULE),
            *(*_CONFIGURED, "--worker-class", worker_class, "--threads", threads),
            *("--graceful-timeout", "1", *options),
            ASGI if worker_class == "asgi" else WSGI,
        ),
        shares=worker_class != "sync",
        # The one looks for its master between two requests only; the other has its event loop
        # wait for the threads in which Django runs synchronous views.
        outlives_jobs=worker_class not in ("sync", "asgi"),
    )


def gunicorns(options: Iterable[tuple[str, ...]]) -> list[Server]:
    """Cross gunicorn's kinds of worker with options."""
    return [
        gunicorn(worker_class, *each)
        for worker_class in ("sync", "gthread", "gevent", "asgi")
        for each in options
    ]


def with_async_views(server: Server) -> Server:
    """Serve the site with the views for ASGI servers: nothing waits in a thread there."""
    return replace(
        server,
        name=f"{server.name} with async views",
        outlives_jobs=True,
        settings="tests.server.async_settings",
    )


ASYNC_ASGI = with_async_views(gunicorn("asgi"))
ASYNC_PRELOADED = with_async_views(gunicorn("asgi", "--preload"))
ASYNC_UVICORN = with_async_views(UVICORN)
