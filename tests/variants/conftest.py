"""Fixtures of the variants' own mathematics: small draws, components by name, the loop oracle."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import torch

import variants
from bench.api import registry
from bench.api.build import build_variant
from bench.api.call import Attended, Call, Dims, QueryShape
from bench.api.inputs import maps_of
from bench.api.noise import Noise
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.slot import Slot
from bench.api.source import Memory, Source, tree_map
from bench.api.variant import Variant

VOCAB, WORD_DIM = 16, 3
"""Source token ids, and the width of the embedded word that comes with a query."""

RELATIONS = 5
"""Labels of pairs of tokens."""

TOLERANCE = 1e-10
"""In float64, how far the vectorized code may be from loops, which add in another order."""


class Drawn(NamedTuple):
    """Queries and a right-padded source of mixed lengths, in float64."""

    query: torch.Tensor
    source: Source
    lengths: list[int]

    def row(self, row: int) -> tuple[torch.Tensor, Source]:
        """One example without its padding."""
        return self.query[row : row + 1], one_row(self.source, row, self.lengths[row])


def mixed_lengths(rows: int, keys: int) -> list[int]:
    """A full row, shorter rows, and a row of one key."""
    return [max(1, keys - 2 * row) for row in range(rows)]


def padding_mask(lengths: list[int], keys: int) -> torch.Tensor:
    return torch.arange(keys) < torch.tensor(lengths)[:, None]


def one_row(source: Source, row: int, length: int) -> Source:
    return Source(
        key=source.key[row : row + 1, :, :length],
        value=source.value[row : row + 1, :, :length],
        tokens=None if source.tokens is None else source.tokens[row : row + 1, :length],
        extras=tree_map(lambda leaf: leaf[row : row + 1, :, :length], source.extras),
    )


@pytest.fixture(autouse=True, scope="session")
def _all_variants_are_loaded():
    variants.load_all()


@pytest.fixture
def draw():
    """`draw(rows, heads, queries, keys, (Eq, Ek, Ev), seed, lengths)` -> `Drawn`.

    `lengths=None` pads mixed lengths; `lengths=()` pads nothing and has no mask.
    """

    def make(
        rows: int = 3,
        heads: int = 2,
        queries: int = 4,
        keys: int = 6,
        widths: tuple[int, int, int] = (5, 5, 4),
        seed: int = 0,
        lengths: list[int] | tuple[()] | None = None,
    ) -> Drawn:
        rng = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=rng, dtype=torch.float64)

        real = mixed_lengths(rows, keys) if lengths is None else list(lengths) or [keys] * rows
        source = Source(
            key=normal(rows, heads, keys, widths[1]),
            value=normal(rows, heads, keys, widths[2]),
            mask=None if lengths == () else padding_mask(real, keys),
            tokens=torch.randint(4, 9, (rows, keys), generator=rng),
        )
        return Drawn(normal(rows, heads, queries, widths[0]), source, real)

    return make


@pytest.fixture
def golden() -> Drawn:
    """One query and three keys of width two, for which golden values are computed by hand."""
    query = torch.tensor([1.0, 0.0], dtype=torch.float64).view(1, 1, 1, 2)
    key = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    value = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]], dtype=torch.float64)
    return Drawn(query, Source(key[None, None], value[None, None]), [3])


@pytest.fixture
def component():
    """`component(axis, selector, heads=.., widths=(Eq, Ek, Ev), regime=..)`, drawn, in float64."""

    def make(
        axis: str,
        selector: str,
        *,
        heads: int = 2,
        widths: tuple[int, int, int] = (5, 5, 4),
        regime: str = "cross",
        seed: int | None = 0,
        **dims: int,
    ) -> Any:
        sizes = {"model_width": heads * widths[0], "source_vocab": VOCAB, **dims}
        sizes.setdefault("word_width", WORD_DIM)
        sizes.setdefault("relations", RELATIONS)
        place = Dims(heads, heads, *widths, regime=regime, **sizes)
        made = registry.make(axis, parse(selector), place).double()
        if seed is not None:
            randomize(made, seed)
        return made

    return make


@pytest.fixture
def beneath():
    """`beneath(selector, ...)`, sizes as for `component` -> the variant without heads."""

    def make(
        selector: str,
        *,
        heads: int = 2,
        widths: tuple[int, int, int] = (5, 5, 4),
        regime: str = "cross",
        seed: int | None = 0,
        impl: str = "auto",
    ) -> Variant:
        place = Dims(heads, heads, *widths, heads * widths[0], regime=regime)
        place = place._replace(source_vocab=VOCAB, word_width=WORD_DIM, relations=RELATIONS)
        capabilities = frozenset(
            {"padding", "stepwise", "equal_heads", "source_tokens", "token_extras", "relations"}
        )
        capabilities |= {"equal_width"} if widths[0] == widths[1] else set()
        made = build_variant(resolve(selector), place, impl=impl, given=capabilities).double()
        if seed is not None:
            randomize(made, seed)
        return made

    return make


@pytest.fixture
def answer():
    """`answer(variant, query, source, **call)` -> what it attends to, all queries at once."""

    def make(variant: Variant, query: torch.Tensor, source: Source, **call: Any) -> Attended:
        own = variant.dims.regime in ("causal", "self")
        memory = None if own else variant.prepare(source)
        state = variant.start(memory, like(query))
        return variant.attend(query, memory, state, new=source if own else None, **call)

    return make


def like(query: torch.Tensor) -> QueryShape:
    rows, heads, _, width = query.shape
    return QueryShape(rows, heads, width, query.dtype, query.device)


@pytest.fixture
def ask():
    """`ask(query, source, ...)` -> a `Call`; `parts` is the memory's, by axis."""

    def make(query: torch.Tensor, source: Source, **options: Any) -> Call:
        memory = Memory(source, options.pop("parts", {}))
        return Call(
            query=query,
            memory=memory,
            offset=options.pop("offset", 0),
            causal=options.pop("causal", False),
            **options,
        )

    return make


def randomize(module: torch.nn.Module, seed: int = 0, scale: float = 0.7) -> None:
    """Draw every parameter, so that nothing is tested at a zero where it began."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            drawn = torch.randn(parameter.shape, generator=rng, dtype=parameter.dtype)
            parameter.copy_(scale * drawn)


class Compared(NamedTuple):
    """What `equals_oracle` built and found, for further assertions."""

    slot: Slot
    query: torch.Tensor
    source: Source
    lengths: list[int]
    parallel: Attended


@pytest.fixture
def equals_oracle():
    """Assert that a variant equals its loops; returns what was compared.

    `equals_oracle(selector, regime, *, dim, heads, source_dim, rows, queries, keys, padded, seed,
    read, noise, progress, drawn, arrange)`. A mixed-length padded batch goes through `attend` all
    at once, query by query and in an uneven split; each row must equal the loops on the unpadded
    example within 1e-10, and padding must get no weight. `heads=None` is the raw head, where
    `source_dim` may differ. `arrange(slot)` may set parameters after they are drawn.
    """
    return compare_with_oracle


def compare_with_oracle(
    selector: str,
    regime: str = "cross",
    *,
    dim: int = 8,
    heads: int | None = 2,
    source_dim: int | None = None,
    rows: int = 3,
    queries: int = 5,
    keys: int = 7,
    padded: bool = True,
    seed: int = 0,
    read: str | None = None,
    noise: Noise | None = None,
    progress: float = 1.0,
    drawn: bool = True,
    arrange: Any = None,
) -> Compared:
    slot = variants.build(
        selector,
        dim=dim,
        heads=heads,
        source_dim=source_dim,
        regime=regime,
        source_vocab=VOCAB,
        word_dim=WORD_DIM,
        relations=RELATIONS,
        attention_only=True,
    )
    slot = slot.double().eval()
    if drawn:
        randomize(slot, seed, scale=0.5)
    if arrange is not None:
        arrange(slot)
    own = regime in ("causal", "self")
    queries = keys if own else 1 if regime == "pool" else queries
    rng = torch.Generator().manual_seed(seed + 1)
    width = dim if source_dim is None else source_dim
    lengths = mixed_lengths(rows, keys) if padded else [keys] * rows
    sequence = torch.randn(rows, keys, width, generator=rng, dtype=torch.float64)
    x = sequence if own else torch.randn(rows, queries, dim, generator=rng, dtype=torch.float64)
    tokens = torch.randint(4, 9, (rows, keys), generator=rng)
    words = torch.randn(rows, queries, WORD_DIM, generator=rng, dtype=torch.float64)
    labels = torch.randint(RELATIONS, (rows, queries, keys), generator=rng)
    source = slot.heads.source(sequence, padding_mask(lengths, keys) if padded else None, tokens)
    source = source.written()
    source = replace(source, extras=inputs_of(slot.key_maps, sequence, by_head=True))
    query = slot.heads.query(x)
    extras = {"word": words, **inputs_of(slot.query_maps, x, by_head=False)}
    options = {"read": read, "noise": noise, "progress": progress}
    splits = ([queries], [1] * queries, _uneven(queries))
    extras["relation"] = labels
    found = [_attend(slot, regime, query, source, extras, split, options) for split in splits]
    for row, length in enumerate(lengths):
        answered = length if own else queries
        output, weights = slot.variant.answer_by_loops(
            query[row, :, :answered],
            one_row(source, row, length),
            slot.variant.default_read if read is None else read,
            row=row,
            noise=noise,
            progress=progress,
            extras={name: given[row, :answered] for name, given in extras.items()},
        )
        assert output.abs().max() > 1e-6, "a comparison of zeros shows nothing"
        for split, attended in zip(splits, found, strict=True):
            where = f"{selector}, {regime}, split {split}, row {row} of length {length}"
            assert_near(attended.output[row, :, :answered], output, f"output of {where}")
            if weights is not None and attended.weights is not None:
                seen = attended.weights[row, :, :answered]
                assert_near(seen[..., :length], weights, f"weights of {where}")
                assert not seen[..., length:].any(), f"padding got weight: {where}"
    return Compared(slot, query, source, lengths, found[0])


def assert_near(found: torch.Tensor, expected: torch.Tensor, what: str = "") -> None:
    gap = (found - expected).abs().max().item() if expected.numel() else 0.0
    assert found.shape == expected.shape, what
    assert gap < TOLERANCE, f"{what}: off by {gap:.3g}"


def _uneven(queries: int) -> list[int]:
    return [queries] if queries < 3 else [2, 1, queries - 3] if queries > 3 else [2, 1]


def _attend(
    slot: Slot,
    regime: str,
    query: torch.Tensor,
    source: Source,
    extras: dict[str, torch.Tensor],
    split: list[int],
    options: dict[str, Any],
) -> Attended:
    variant = slot.variant
    memory = None if regime == "causal" else variant.receive(source)
    state = variant.start(memory, like(query))
    parts, at = [], 0
    for count in split:
        new = _slice(source, at, at + count) if regime == "causal" else None
        asked = query[:, :, at : at + count]
        beside = {name: given[:, at : at + count] for name, given in extras.items()}
        parts.append(variant.attend(asked, memory, state, new=new, extras=beside, **options))
        state = parts[-1].state
        at += count
    weights = None
    if parts[0].weights is not None:
        wide = source.num_keys
        padded = [
            torch.nn.functional.pad(part.weights, (0, wide - part.weights.shape[3]))
            for part in parts
        ]
        weights = torch.cat(padded, 2)
    terms = {name: torch.cat([p.terms[name] for p in parts], 1) for name in parts[0].terms}
    return Attended(torch.cat([part.output for part in parts], 2), weights, state, terms)


def _slice(source: Source, low: int, high: int) -> Source:
    return Source(
        key=source.key[:, :, low:high],
        value=source.value[:, :, low:high],
        mask=None if source.mask is None else source.mask[:, low:high],
        tokens=None if source.tokens is None else source.tokens[:, low:high],
        extras=tree_map(lambda leaf: leaf[:, :, low:high], source.extras),
    )


def inputs_of(
    maps: torch.nn.ModuleDict, x: torch.Tensor, *, by_head: bool
) -> dict[str, torch.Tensor]:
    """What a slot projects beside keys (`by_head`, heads before places) or beside queries."""
    found = {name: one(x) for name, one in maps_of(maps).items()}
    return {name: one.transpose(1, 2) if by_head else one for name, one in found.items()}
