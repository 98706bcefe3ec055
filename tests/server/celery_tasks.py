"""A Celery application whose only task reads a document."""

from __future__ import annotations

import os

import django
from celery import Celery

django.setup()

app = Celery("site", broker="filesystem://")
app.conf.broker_transport_options = dict.fromkeys(
    ("data_folder_in", "data_folder_out"), os.environ["TEST_BROKER"]
) | {"control_folder": os.environ["TEST_BROKER"] + "/control", "polling_interval": 0.1}
app.conf.broker_connection_retry_on_startup = False
app.conf.worker_lost_wait = 0.1


@app.task
def read(document: str) -> None:
    from pdfpool_django.extraction import extract
    from tests.server.meeting import report

    report(text=extract(document.encode(), caller="task").text)
