"""What was found on a GPU, as one Markdown file beside the report of the run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from tabulate import tabulate

from bench.gpu.pieces import Piece, State
from results.json_values import Json, JsonObject, as_list, as_number, as_object, as_text

SUMMARY = "gpu.md"
"""File in the run folder."""
UNITS = {"flops_per_s": (1e12, "TFLOP/s"), "bytes_per_s": (1e12, "TB/s"), "per_s": (1e9, "10⁹/s")}


def summary_text(pieces: Sequence[Piece], state: State, environment: Mapping[str, object]) -> str:
    """The file: the device, ceilings, codes, longest sequences, and what is not there."""
    parts = [
        "# What was measured on this device",
        f"{environment.get('gpu') or environment.get('cpu')}, torch "
        f"{cast('Mapping[str, str]', environment.get('packages', {})).get('torch', 'unknown')}. "
        "Times of speed cells, their certificates and training are in report.md.",
        *_section("Ceilings", _ceilings(pieces, state), ("ceiling", "value", "unit")),
        *_section("Codes of the same attention", _codes(pieces, state), CODES),
        *_section("Longest sequence that fits", _largest(pieces, state), LARGEST),
        *_section("What is missing, and why", _open(pieces, state), ("piece", "status", "reason")),
    ]
    return "\n\n".join(parts) + "\n"


def red_variants(pieces: Sequence[Piece], state: State) -> list[str]:
    """Variants whose certificate on the device is red."""
    found = _found(pieces, state, "certificates")
    red = [as_text(name) for one in found for name in as_list(as_object(one).get("red"))]
    return list(dict.fromkeys(red))  # once, whatever the number of codes and formats


CODES = ("variant", "workload", "code", "median (ms)", "to plain", "first call (s)", "off")
LARGEST = ("variant", "pass", "length (vectors)", "ended by")


def _section(title: str, rows: list[list[object]], heads: Sequence[str]) -> Iterator[str]:
    yield f"## {title}"
    yield tabulate(rows, heads, tablefmt="github") if rows else "Nothing yet."


def _found(pieces: Sequence[Piece], state: State, kind: str) -> Iterator[Json]:
    for piece in pieces:
        known = state.of(piece.name)
        if piece.name.startswith(kind) and as_text(known.get("status")) == "ok":
            yield known.get("found")


def _ceilings(pieces: Sequence[Piece], state: State) -> list[list[object]]:
    rows: list[list[object]] = []
    for found in _found(pieces, state, "ceilings"):
        for name, value in as_object(found).items():
            ending = next(ending for ending in UNITS if name.endswith(ending))
            title = name.removesuffix(ending).strip("_").replace("_", " ")
            size, unit = UNITS[ending]
            shown = value if isinstance(value, str) else f"{(as_number(value) or 0) / size:.4g}"
            rows.append([title, shown, unit])
    return rows


def _codes(pieces: Sequence[Piece], state: State) -> list[list[object]]:
    rows: list[list[object]] = []
    for found in _found(pieces, state, "compiled"):
        lines = [as_object(line) for line in as_list(found)]
        plain = {
            as_text(line.get("workload")): as_number(line.get("median_ms")) or 0.0
            for line in lines
            if line.get("code") == "eager" and line.get("status") == "ok"
        }
        rows += [_code(line, plain) for line in lines]
    return rows


def _code(line: JsonObject, plain: Mapping[str, float]) -> list[object]:
    start = [as_text(line.get(name)) for name in ("variant", "workload", "code")]
    if line.get("status") != "ok":
        return [*start, "–", "–", "–", f"{as_text(line.get('status'))}: {line.get('detail')}"]
    spent, first = (as_number(line.get(name)) or 0.0 for name in ("median_ms", "first_call_s"))
    off = as_number(line.get("off"))
    usual = plain.get(start[1], 0.0)
    ratio = f"{spent / usual:.3f}" if usual else "–"
    return [*start, f"{spent:.4g}", ratio, f"{first:.2f}", "–" if off is None else f"{off:.1e}"]


def _largest(pieces: Sequence[Piece], state: State) -> list[list[object]]:
    rows: list[list[object]] = []
    for found in _found(pieces, state, "longest sequence"):
        line = as_object(found)
        why = as_text(line.get("ended")).replace("_", " ")
        passed = as_text(line.get("workload")).replace("_", " and ")
        rows.append([line.get("variant"), passed, line.get("length") or "–", why])
    return rows


def _open(pieces: Sequence[Piece], state: State) -> list[list[object]]:
    rows: list[list[object]] = []
    for piece in pieces:
        known = state.of(piece.name)
        status = as_text(known.get("status")) or "not yet"
        if status != "ok":
            rows.append([piece.title, status, as_text(known.get("detail")) or "no time was left"])
    return rows
