"""Inflates what does not fit into memory."""

from __future__ import annotations

import zlib

MIB = 1024 * 1024


def bomb(size: int) -> bytes:
    """Return raw deflated zeros: one block, which a full flush lets stand alone, many times."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = squeezer.compress(bytes(MIB)) + squeezer.flush(zlib.Z_FULL_FLUSH)
    return block * size + squeezer.flush()


BOMB = bomb(256)


def act(page: int) -> str:
    return zlib.decompress(BOMB, -zlib.MAX_WBITS).decode()
