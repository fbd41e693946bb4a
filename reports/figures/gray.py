"""Weights as an image of gray cells, inside a drawing."""

import base64
import struct
import zlib
from collections.abc import Sequence

from reports.figures.svg import number

SHARP = 400
"""Pixels across at least, so that no program that smooths an enlarged image blurs its cells."""


def gray_image(rows: Sequence[Sequence[float]], box: tuple[float, float, float, float]) -> str:
    """An `<image>` in which 0 is black and 1 is white.

    Args:
        rows: Weights, as many in every row; what lies outside counts as the nearer end.
        box: Left, top, width and height (pixels).
    """
    left, top, width, height = map(number, box)
    picture = base64.b64encode(_png(rows)).decode()
    return (
        f'<image x="{left}" y="{top}" width="{width}" height="{height}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{picture}"/>'
    )


def _png(rows: Sequence[Sequence[float]]) -> bytes:
    """A file with eight bits of gray and some pixels a weight."""
    across, down = (-(-SHARP // cells) for cells in (len(rows[0]), len(rows)))
    size = struct.pack(">II", across * len(rows[0]), down * len(rows))
    lines = b"".join(_lines([*map(_shade, row)], across, down) for row in rows)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", size + bytes([8, 0, 0, 0, 0])),
            _chunk(b"IDAT", zlib.compress(lines)),
            _chunk(b"IEND", b""),
        )
    )


def _lines(shades: Sequence[int], across: int, down: int) -> bytes:
    """Lines of one row: the first holds differences along it, the others none to that above."""
    steps = [(shade - before) % 256 for before, shade in zip([0, *shades], shades, strict=False)]
    along = b"".join(bytes([step]) + bytes(across - 1) for step in steps)
    return b"\x01" + along + (b"\x02" + bytes(len(along))) * (down - 1)


def _shade(weight: float) -> int:
    return round(255 * min(1.0, max(0.0, weight)))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
