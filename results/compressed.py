"""JSON as a short text: metadata of a Parquet file are not compressed by themselves."""

import base64
import json
import zlib

from results.json_values import Json, read_value

LEVEL = 9


def compressed(data: object) -> str:
    """As text of ASCII letters.

    >>> uncompressed(compressed({"cells": [1, 2]}).encode())
    {'cells': [1, 2]}
    """
    return base64.b64encode(zlib.compress(json_text(data).encode(), LEVEL)).decode("ascii")


def uncompressed(text: bytes) -> Json:
    """What `compressed` wrote, or plain JSON, which earlier packs hold.

    Raises:
        Exception: Whatever damaged bytes lead to.
    """
    if text[:1] in (b"{", b"["):
        return read_value(text)
    return read_value(zlib.decompress(base64.b64decode(text)).decode())


def json_text(data: object) -> str:
    """One line without spaces."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
