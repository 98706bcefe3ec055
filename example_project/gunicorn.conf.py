"""How gunicorn serves the example site: one worker, whose threads share one pool."""

from __future__ import annotations

import os
from typing import Any

wsgi_app = "example_project.wsgi:application"
bind = f"127.0.0.1:{os.environ.get('PORT', '8000')}"
workers = 1
worker_class = "gthread"
threads = 16
graceful_timeout = 15
control_socket_disable = True
raw_env = ["LOG_LEVEL=INFO"]


def worker_exit(server: Any, worker: Any) -> None:  # noqa: ARG001 - gunicorn's signature
    """End what is still running, and the children with it, when a worker ends (SIGTERM, HUP)."""
    from pdfpool_django import runtime

    runtime.close(grace=0)
