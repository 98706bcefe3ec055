"""Frames, in whatever pieces they arrive, and what is refused."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdfpool_django.sandbox import wire
from pdfpool_django.sandbox.wire import HEADER, MAX_HEAD, Decoder, Frame

RELAXED = settings(max_examples=50, deadline=None)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
FRAMES = st.builds(Frame, st.dictionaries(st.text(), VALUES, max_size=3), st.binary(max_size=50))
MAX_BODY = 50


def framed(head: bytes, body: bytes = b"") -> bytes:
    return HEADER.pack(len(head), len(body)) + head + body


def decoded(data: bytes, max_body: int = MAX_BODY) -> list[Frame]:
    decoder = Decoder(max_body)
    decoder.feed(data)
    return list(decoder)


@RELAXED
@given(st.lists(FRAMES, max_size=4), st.data())
def test_frames_arrive_whole_in_whatever_pieces(frames: list[Frame], data: st.DataObject) -> None:
    stream = b"".join(wire.encode(frame.message, frame.body) for frame in frames)
    decoder, arrived, at = Decoder(MAX_BODY), [], 0
    while at < len(stream):
        size = data.draw(st.integers(1, len(stream) - at))
        decoder.feed(stream[at : at + size])
        arrived += decoder
        at += size
    assert arrived == frames
    assert decoder.next() is None


@RELAXED
@given(FRAMES)
def test_a_large_body_is_announced_like_a_small_one(frame: Frame) -> None:
    head = wire.encode_head(frame.message, frame.body)
    assert head + frame.body == wire.encode(frame.message, frame.body)


def test_nothing_but_a_whole_frame_is_given() -> None:
    data = wire.encode({"a": 1}, b"body")
    for size in range(len(data)):
        assert decoded(data[:size]) == []
    assert decoded(data) == [Frame({"a": 1}, b"body")]


def test_a_large_head_is_refused_before_it_arrives() -> None:
    with pytest.raises(wire.WireError, match="of JSON"):
        decoded(HEADER.pack(MAX_HEAD + 1, 0))
    assert decoded(HEADER.pack(MAX_HEAD, 0)) == []


def test_a_large_body_is_refused_before_it_arrives() -> None:
    with pytest.raises(wire.BodyTooLarge, match="body of 51 bytes"):
        decoded(HEADER.pack(2, MAX_BODY + 1))
    assert decoded(HEADER.pack(2, MAX_BODY)) == []


def test_a_body_is_refused_where_none_is_taken() -> None:
    with pytest.raises(wire.BodyTooLarge):
        decoded(wire.encode({}, b"x"), max_body=0)


def test_the_size_of_bodies_may_change_between_frames() -> None:
    decoder = Decoder(1)
    decoder.feed(wire.encode({}, b"x") + wire.encode({}, b"xy"))
    assert decoder.next() == Frame({}, b"x")
    decoder.max_body = 2
    assert decoder.next() == Frame({}, b"xy")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"{",
        b"garbage",
        b"\xff\xfe\xfd",
        b"{}{}",
        b"[]",
        b"7",
        b"null",
        b'"text"',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": -1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    ],
    ids=lambda head: repr(head[:20]),
)
def test_what_is_no_json_object_is_refused(head: bytes) -> None:
    with pytest.raises(wire.WireError):
        decoded(framed(head))


@RELAXED
@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_refused(data: bytes) -> None:
    try:
        frames = decoded(data)
    except wire.WireError:
        return
    assert all(isinstance(frame.message, dict) for frame in frames)


@RELAXED
@given(st.binary(max_size=100))
def test_any_head_is_an_object_or_refused(head: bytes) -> None:
    try:
        (frame,) = decoded(framed(head))
    except wire.WireError:
        return
    json.dumps(frame.message, allow_nan=False)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def frames_of(reader: wire.DescriptorReader, count: int) -> list[tuple[dict[str, Any], list[int]]]:
    found: list[tuple[dict[str, Any], list[int]]] = []
    while len(found) < count:
        assert reader.read()
        found += reader.frames()
    return found


def test_descriptors_travel_with_their_frame(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    readable, writable = os.pipe()
    wire.send(ours, {"name": "none"})
    wire.send(ours, {"name": "two", "descriptors": 2}, fds=[readable, writable])
    wire.send(ours, {"name": "one", "descriptors": 1}, fds=[readable])
    os.close(readable)
    os.close(writable)
    frames = frames_of(wire.DescriptorReader(theirs), 3)
    received = {message["name"]: descriptors for message, descriptors in frames}
    assert received["none"] == []
    first_end, other_end = received["two"]
    (again,) = received["one"]
    os.write(other_end, b"through both")
    assert os.read(again, 7) == b"through"
    assert os.read(first_end, 10) == b" both"
    for fd in (first_end, other_end, again):
        assert not os.get_inheritable(fd)
        os.close(fd)


def test_a_large_frame_is_sent_whole(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    body = os.urandom(100_000)
    wire.send(ours, {"a": 1}, body)
    decoder = Decoder(len(body))
    while (frame := decoder.next()) is None:
        decoder.feed(theirs.recv(4096))
    assert frame == Frame({"a": 1}, body)


def test_a_frame_that_was_answered_and_hung_up_on_was_sent(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    send_fds = socket.send_fds

    def send_and_be_left(*arguments: Any) -> int:
        sent = send_fds(*arguments)
        theirs.close()
        return sent

    monkeypatch.setattr(socket, "send_fds", send_and_be_left)
    with open(os.devnull, "rb") as file:
        wire.send(ours, {"descriptors": 1}, fds=[file.fileno()])


def test_the_end_is_the_end_however_it_comes(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    ours.send(b"unread")
    theirs.send(b"x")
    theirs.close()  # with something unread, so that the other end is reset
    reader = wire.DescriptorReader(ours)
    assert reader.read()
    assert not reader.read()


def test_descriptors_that_no_frame_claims_are_closed(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    readable, writable = os.pipe()
    wire.send(ours, {"descriptors": 0}, fds=[writable])
    os.close(writable)
    reader = wire.DescriptorReader(theirs)
    assert frames_of(reader, 1) == [({"descriptors": 0}, [])]
    reader.close()
    assert os.read(readable, 1) == b""  # so nobody can write to it any more
    os.close(readable)


def test_descriptors_that_were_lost_on_the_way_are_noticed(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    wire.send(ours, {"descriptors": 1})
    reader = wire.DescriptorReader(theirs)
    assert reader.read()
    with pytest.raises(wire.WireError, match="lost"):
        list(reader.frames())
