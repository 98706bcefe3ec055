"""Frames: a length-prefixed JSON object with an optional binary body, and descriptors beside it.

A frame is two unsigned 32-bit numbers in network order, the lengths of the
JSON and of the body, then both. What arrives is untrusted: it is bounded
before it is kept, and checked before it is used.
"""

from __future__ import annotations

import array
import json
import math
import os
import socket
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

HEADER = struct.Struct("!II")
MAX_HEAD = 4 * 1024 * 1024
"""Bytes of JSON in one frame."""

_CHUNK = 256 * 1024
_JOIN_BELOW = 64 * 1024
_MAX_DESCRIPTORS = 4
# Python sets it on every descriptor but on one received.
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class WireError(Exception):
    """What arrived is not a frame."""


class BodyTooLarge(WireError):
    """A frame announces a larger body than its receiver takes."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A message and its body."""

    message: dict[str, Any]
    body: bytes = b""
    size: int = field(default=0, compare=False)
    """Bytes that it took on the wire, its header left out."""


def encode(message: dict[str, Any], body: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    return encode_head(message, body) + body


def send(
    sock: socket.socket, message: dict[str, Any], body: bytes = b"", fds: Iterable[int] = ()
) -> None:
    """Send a frame; the descriptors travel with its first byte.

    Raises:
        OSError: The other end is gone, or the socket's timeout has passed.
    """
    small = len(body) < _JOIN_BELOW
    data = encode(message, body) if small else encode_head(message, body)
    descriptors = list(fds)
    if descriptors:
        sent = socket.send_fds(sock, [data], descriptors)
        data = data[sent:]
    if data:  # sending nothing fails where the other end has answered and gone
        sock.sendall(data)
    if not small:
        sock.sendall(body)


def encode_head(message: dict[str, Any], body: bytes) -> bytes:
    """Return a frame's bytes up to its body, so that a large one is not copied."""
    head = json.dumps(message, separators=(",", ":")).encode("ascii")
    return HEADER.pack(len(head), len(body)) + head


class Decoder:
    """Turns the bytes of a stream into frames."""

    def __init__(self, max_body: int = 0) -> None:
        self.max_body = max_body
        """Bytes of a body; may be changed between two frames."""
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data

    def next(self) -> Frame | None:
        """Return the next whole frame, or ``None`` where more bytes are needed.

        Raises:
            WireError: The bytes are no frame.
            BodyTooLarge: The body is larger than `max_body`.
        """
        if len(self._data) < HEADER.size:
            return None
        head_size, body_size = HEADER.unpack_from(self._data)
        if head_size > MAX_HEAD:
            raise WireError(f"a frame claims {head_size} bytes of JSON")
        if body_size > self.max_body:
            raise BodyTooLarge(f"a frame claims a body of {body_size} bytes")
        start, end = HEADER.size, HEADER.size + head_size + body_size
        if len(self._data) < end:
            return None
        message = _parse(bytes(self._data[start : start + head_size]))
        body = bytes(self._data[start + head_size : end])
        del self._data[:end]
        return Frame(message, body, head_size + body_size)

    def __iter__(self) -> Iterator[Frame]:
        while (frame := self.next()) is not None:
            yield frame


def _parse(head: bytes) -> dict[str, Any]:
    try:
        message = json.loads(head, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise WireError("a frame's JSON cannot be parsed") from error
    if not isinstance(message, dict):
        raise WireError("a frame's JSON is not an object")
    return message


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


class DescriptorReader:
    """Reads frames that may have descriptors beside them, from a peer that is trusted."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._decoder = Decoder()
        self._descriptors: deque[int] = deque()

    def read(self) -> bool:
        """Take in what has arrived, waiting for something; return false at the end."""
        try:
            data, ancillary, _, _ = self._sock.recvmsg(
                _CHUNK,
                socket.CMSG_SPACE(_MAX_DESCRIPTORS * array.array("i").itemsize),
                _CLOSE_ON_EXEC,
            )
        except ConnectionResetError:
            return False
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self._descriptors.extend(_descriptors_in(payload))
        self._decoder.feed(data)
        return bool(data)

    def frames(self) -> Iterator[tuple[dict[str, Any], list[int]]]:
        """Yield the whole frames that have arrived, each with its descriptors."""
        for frame in self._decoder:
            count = frame.message.get("descriptors", 0)
            if count > len(self._descriptors):
                raise WireError("descriptors were lost on the way, as too many are open here")
            yield frame.message, [self._descriptors.popleft() for _ in range(count)]

    def close(self) -> None:
        """Close the descriptors that no frame has claimed."""
        while self._descriptors:
            os.close(self._descriptors.popleft())


def _descriptors_in(payload: bytes) -> list[int]:
    numbers = array.array("i")
    numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
    return numbers.tolist()
