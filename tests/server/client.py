"""A client of the example site, over a real socket."""

from __future__ import annotations

import http.cookiejar
import json
import re
import urllib.error
import urllib.parse
import urllib.request
import uuid
from dataclasses import dataclass
from typing import Any

TIMEOUT = 60


@dataclass(frozen=True)
class Answer:
    """A response that has been read."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class SiteClient:
    """One user's browser, so far as cookies and forms go."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._jar))

    def open(self, path: str, data: bytes | None = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.base + path, data, named)
        try:
            with self._opener.open(request, timeout=TIMEOUT) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read())

    def log_in(self, name: str, password: str) -> Answer:
        self.open("/accounts/login/")
        form = {"username": name, "password": password, "csrfmiddlewaretoken": self.token}
        return self.open("/accounts/login/", urllib.parse.urlencode(form).encode())

    @property
    def token(self) -> str:
        return next(str(cookie.value) for cookie in self._jar if cookie.name == "csrftoken")

    def extract(self, data: bytes, accept: str = "application/json", **fields: str) -> Answer:
        """Post a document as a form does, to the view for programs."""
        body, kind = multipart(data, fields)
        return self.open(
            "/pdf/extract/", body, Content_Type=kind, Accept=accept, X_CSRFToken=self.token
        )

    def upload(self, data: bytes, **fields: str) -> Answer:
        """Post a document with the form of the page for people."""
        page = self.open("/pdf/").text
        match = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert match, page
        body, kind = multipart(data, {**fields, "csrfmiddlewaretoken": match[1]})
        return self.open("/pdf/", body, Content_Type=kind)


def multipart(data: bytes, fields: dict[str, str]) -> tuple[bytes, str]:
    """Return a form's body and its type (RFC 7578)."""
    boundary = uuid.uuid4().hex
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    parts.append(
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n'
        "Content-Type: application/pdf\r\n\r\n".encode()
        + data
        + f"\r\n--{boundary}--\r\n".encode()
    )
    return b"".join(parts), f"multipart/form-data; boundary={boundary}"
