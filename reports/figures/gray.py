"""Weights as an image of gray cells, inside a drawing."""

import base64
from collections.abc import Sequence
from io import BytesIO

import numpy as np

from reports.figures.svg import number

SHARP = 160
"""Pixels across at least, so that a program that smooths an enlarged image blurs edges alone."""


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
    from PIL import Image  # noqa: PLC0415  many reports have no map

    shades = np.rint(255 * np.clip(np.array(rows, dtype=float), 0.0, 1.0)).astype(np.uint8)
    down, across = (-(-SHARP // cells) for cells in shades.shape)
    file = BytesIO()
    Image.fromarray(shades.repeat(down, 0).repeat(across, 1)).save(file, "PNG", optimize=True)
    return file.getvalue()
