"""Data that took long to make, kept in the cache under the hash of all it depends on."""

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.api.cache import cache_folder, keep
from bench.api.code_of_data import Maker, code_of

DIGEST = "digest"
"""Array of a stored file that tells whether the others are whole."""

Arrays = Mapping[str, npt.NDArray[np.generic]]


def kept_arrays(
    kind: str,
    depends: Mapping[str, object],
    make: Callable[[], Arrays],
    *,
    given: Sequence[Maker] = (),
    cache_dir: Path | None = None,
) -> dict[str, npt.NDArray[np.generic]]:
    """Load arrays from the cache, or make and keep them.

    A stored file that cannot be read, or holds something else, is made anew: a cache holds nothing
    of its own. Where nothing can be stored, it is made at each use.

    Args:
        kind: Folder in the cache.
        depends: All that decides the result beside the code: hashes of files, options.
        make: Makes the arrays. The code that it reaches decides the result, too.
        given: Functions that it was given by others, whose code it does not name.
        cache_dir: Replaces the cache folder.
    """
    whole = {**depends, "code": code_of(make, *given)}
    canonical = json.dumps(whole, sort_keys=True, separators=(",", ":"))
    identity = hashlib.sha256(canonical.encode()).hexdigest()
    path = cache_folder(cache_dir) / kind / f"{identity[:24]}.npz"
    found = _load(path)
    if found is not None:
        return found
    made = dict(make())
    buffer = io.BytesIO()
    stored = {**made, DIGEST: _digest(made)}
    np.savez(buffer, **stored)  # type: ignore[arg-type]  # stubs take the keywords for options
    keep(path, buffer.getvalue())
    return made


def pack(rows: list[list[int]]) -> dict[str, npt.NDArray[np.generic]]:
    """Rows of ids as two arrays, for `kept_arrays`.

    >>> unpack(pack([[3, 4], [], [5]]))
    [[3, 4], [], [5]]
    """
    flat = [number for row in rows for number in row]
    return {
        "ids": np.asarray(flat, dtype=np.int32),
        "lengths": np.asarray([len(row) for row in rows], dtype=np.int32),
    }


def unpack(arrays: Arrays) -> list[list[int]]:
    """The rows again."""
    ends = np.cumsum(arrays["lengths"])
    return [part.tolist() for part in np.split(arrays["ids"], ends)[:-1]]


def _load(path: Path) -> dict[str, npt.NDArray[np.generic]] | None:
    try:
        with np.load(path, allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
        digest = found.pop(DIGEST)
        return found if np.array_equal(digest, _digest(found)) else None
    except Exception:  # noqa: BLE001  zipfile, zlib and NumPy raise some ten kinds for a damaged file
        return None


def _digest(arrays: Arrays) -> npt.NDArray[np.uint8]:
    """A hash of names, kinds, shapes and numbers."""
    found = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(found.digest(), dtype=np.uint8)
