"""Requests whose answers are read bit by bit, or never."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from typing import Any
from urllib.parse import urlsplit

from tests.server.client import Answer, SiteClient

TIMEOUT = 20
NDJSON = "application/x-ndjson"


class Sent:
    """A request that has been sent."""

    def __init__(
        self, client: SiteClient, data: bytes, accept: str = "application/json", **headers: str
    ) -> None:
        address = urlsplit(client.base)
        assert address.hostname
        self._connection = http.client.HTTPConnection(
            address.hostname, address.port, timeout=TIMEOUT
        )
        named = {
            "Cookie": "; ".join(f"{each.name}={each.value}" for each in client._jar),
            "X-CSRFToken": client.token,
            "Content-Type": "application/pdf",
            "Accept": accept,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        self._connection.request("POST", "/pdf/extract/", data, named)
        self._socket = self._connection.sock
        self._response: http.client.HTTPResponse | None = None

    @property
    def response(self) -> http.client.HTTPResponse:
        """The response, as soon as its head is there."""
        if self._response is None:
            self._response = self._connection.getresponse()
        return self._response

    def line(self) -> Any:
        """Return the next line, as soon as it is there."""
        line = self.response.readline()
        assert line.endswith(b"\n"), line
        return json.loads(line)

    def answer(self) -> Answer:
        """Wait for the whole answer."""
        with self.response as response:
            answer = Answer(response.status, response.headers, response.read())
        self._connection.close()
        return answer

    def go_away(self) -> None:
        """Break the connection off, as a browser does whose user has gone."""
        with contextlib.suppress(OSError):  # after the end of the answer, it may be closed
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._response is not None:
            self._response.close()
        self._connection.close()
