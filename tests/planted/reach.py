"""Which certificates run which lines of the mathematics: recorded once, and kept."""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from bench.api.axes import CHAIN_AXES
from bench.api.config import Choices, default_of, search_ranges
from bench.api.registry import listed_variants, registrations
from bench.api.resolve import resolve
from bench.conformance import certify
from tests.planted.planting import ROOT

TRACED = (str(ROOT / "variants"), str(ROOT / "bench" / "api"))


@dataclass(frozen=True)
class Reach:
    """What the certificate of one variant runs."""

    variant: str
    seconds: float
    """CPU time of the checks that were watched, which tells cheap certificates from dear ones."""
    lines: frozenset[str]
    """`file:line`."""


def recorded(cache: Path) -> list[Reach]:
    """The reach of every attention, the cheapest first; read from a file where nothing changed."""
    key = _key()
    if cache.exists():
        kept = json.loads(cache.read_text(encoding="utf-8"))
        if kept["key"] == key:
            return [Reach(r["variant"], r["seconds"], frozenset(r["lines"])) for r in kept["found"]]
    found = watched(_attentions())
    rows = [
        {"variant": one.variant, "seconds": one.seconds, "lines": sorted(one.lines)}
        for one in found
    ]
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text(json.dumps({"key": key, "found": rows}), encoding="utf-8")
    return found


def watched(variants: Iterable[str]) -> list[Reach]:
    """The reach of some variants, the cheapest first."""
    return sorted(map(_reach, variants), key=lambda one: one.seconds)


def _key() -> str:
    """A hash of the code that is traced and of the checks."""
    sums = hashlib.sha256()
    for folder in ("variants", "bench/api", "bench/conformance"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            sums.update(path.read_bytes())
    return sums.hexdigest()


def _attentions() -> list[str]:
    """A name for every attention, then choices that are not the default."""
    found: dict[str, str] = {}
    for name in (*sorted(listed_variants()), *_choices()):
        spec = resolve(name)
        chain = {axis: spec.axes.get(axis, ()) for axis in (*CHAIN_AXES, "head")}
        found.setdefault(repr((chain, spec.mechanism)), name)
    return list(found.values())


def _choices() -> list[str]:
    found = []
    for axis in (*CHAIN_AXES, "mechanism"):
        for name, registered in registrations(axis).items():
            for option, search in search_ranges(registered.config).items():
                values = search.options if isinstance(search, Choices) else ()
                for value in values:
                    if value == default_of(registered.config, option):
                        continue
                    shown = str(value).lower() if isinstance(value, bool) else value
                    chosen = f"{name}[{option}={shown}]"
                    alone = axis in ("score", "mechanism")
                    found.append(chosen if alone else f"additive[{axis}={chosen}]")
    return found


def _reach(variant: str) -> Reach:
    start = time.process_time()
    lines = _traced(lambda: certify(variant, checks=("oracle", "splits", "stream", "long")))
    return Reach(variant, time.process_time() - start, frozenset(lines))


def _traced(work: Callable[[], object]) -> set[str]:
    """Lines of the traced folders that something runs."""
    seen: set[tuple[str, int]] = set()

    def line(frame: FrameType, event: str, _: Any) -> Any:
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def called(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        loops = code.co_name.lstrip("_").startswith("oracle")
        return line if code.co_filename.startswith(TRACED) and not loops else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
    return {f"{Path(file).relative_to(ROOT)}:{number}" for file, number in seen}
