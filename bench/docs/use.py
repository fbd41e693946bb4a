"""How a variant is used in a model of one's own: a few lines that run as they stand."""

from collections.abc import Iterator
from itertools import product

import torch

from bench.api.call import Regime
from bench.api.errors import BenchError
from bench.api.position import Position
from bench.api.resolve import resolve
from variants import build

DIM, HEADS, ROWS, QUERIES, KEYS = 16, 4, 2, 5, 7
PREFERRED: tuple[Regime, ...] = ("causal", "self", "cross", "pool")
BUILT: tuple[dict[str, int | bool], ...] = (
    {},
    {"attention_only": True},
    {"relations": 3},
    {"attention_only": True, "source_vocab": 20, "word_dim": 8},
)
"""Further arguments of `build`, in the order in which they are tried."""
HANDED = {
    "relations": ("relation", "torch.randint({relations}, ({rows}, {queries}, {queries}))"),
    "word_dim": ("word", "torch.randn({rows}, {queries}, {word_dim})"),
}
"""What a call hands over in `extras` for such an argument: its name, and how it is drawn."""


def use_of(name: str) -> str:
    """An interactive session that builds a variant and asks it; empty where nothing fits.

    >>> use_of("additive").splitlines()[0]
    '>>> attention = variants.build("additive", dim=16, heads=4, regime="causal")'
    """
    plain = (
        (f"attention = {built}", f"attention{called}.shape") for built, called in _attempts(name)
    )
    adds = _adds_positions(name)
    for lines in (_with_positions(name),) if adds else (*plain, _stacked(name)):
        try:
            shape = _shape(*lines)
        except BenchError:
            continue
        return "\n".join((*(f">>> {line}" for line in lines), str(shape)))
    return ""


def _shape(*lines: str) -> object:
    """What the session prints: our own lines, run as a reader would."""
    known: dict[str, object] = {"torch": torch, "variants": _Variants}
    *built, called = lines
    with torch.random.fork_rng(devices=()):
        for line in built:
            exec(line, known)  # the text is made below, of names that are registered
        return eval(called, known)


class _Variants:
    build = staticmethod(build)


def _attempts(name: str) -> Iterator[tuple[str, str]]:
    """Calls of `build` and of what it returns, the plain ones first."""
    for more, regime, heads in product(BUILT, PREFERRED, (HEADS, None)):
        options: dict[str, object] = {"dim": DIM, "heads": heads, "regime": regime, **more}
        written = ", ".join(f"{key}={_shown(value)}" for key, value in options.items() if value)
        yield f'variants.build("{name}", {written})', f"({', '.join(_given(regime, more))})"


def _adds_positions(name: str) -> bool:
    """Whether a variant adds positions to the input of a network."""
    parts = [part for _, part in resolve(name).parts]
    return any(issubclass(part, Position) and part.is_added() for part in parts)


def _with_positions(name: str) -> tuple[str, ...]:
    """Attention behind positions that are added to the input."""
    given = f'"{name}", dim={DIM}, heads={HEADS}, regime="causal", attention_only=True'
    return (
        f"attention = variants.build({given})",
        f"x = attention.variant.embed(torch.randn({ROWS}, {QUERIES}, {DIM}), 0)",
        "attention(x).shape",
    )


def _stacked(name: str) -> tuple[str, ...]:
    """Two layers, of which the second one reads the first."""
    given = f'"{name}", dim={DIM}, heads={HEADS}, regime="causal"'
    return (
        f"first = variants.build({given}, layers_below=0)",
        f"second = variants.build({given}, layers_below=1)",
        f"x = torch.randn({ROWS}, {QUERIES}, {DIM})",
        "read = first.answer_all(x, x, want_memory=True)[1].memory",
        "second(x, below=read).shape",
    )


def _given(regime: Regime, more: dict[str, int | bool]) -> Iterator[str]:
    """Arguments of the call."""
    queries = 1 if regime == "pool" else QUERIES
    own = regime in ("causal", "self")
    yield f"torch.randn({ROWS}, {queries}, {DIM})"
    if not own:
        yield f"torch.randn({ROWS}, {KEYS}, {DIM})"
    if "source_vocab" in more:
        keys = queries if own else KEYS
        yield f"tokens=torch.randint({more['source_vocab']}, ({ROWS}, {keys}))"
    sizes = {"rows": ROWS, "queries": queries, **more}
    extras = [
        f'"{given}": {drawn.format(**sizes)}'
        for argument, (given, drawn) in HANDED.items()
        if argument in more
    ]
    if extras:
        yield f"extras={{{', '.join(extras)}}}"


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
