"""Entropy at the start: a fresh variant looks at several keys, or says why it does not.

A softmax that starts on one key has almost no gradient in its energies, and training may never
leave that key (ADR 19). States here have variance 1 in every unit, as fresh embeddings and
normalized layers have; they pass through the variant's own projections.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bench.api.call import Call
from bench.api.chain import Chain
from bench.api.inputs import maps_of
from bench.api.resolve import VariantSpec
from bench.api.source import Source
from bench.api.start import Starting
from bench.conformance.compare import expect
from bench.conformance.place import VOCAB, WORD_WIDTH, Placed, build_subject
from bench.conformance.question import Question, ReadMode, normal_draws, padding
from bench.conformance.walkthrough import answer

LOW, HIGH = 0.3, 1.0
"""Share of the uniform entropy in which attention starts."""
ROUNDING = 1e-6
WIDTHS = (32, 256)
"""Widths of states: the ends of what tasks use; energies without a scale grow with the width."""
SEEDS = (1, 2)
KEYS, QUERIES = 16, 4
LENGTHS = (16, 12, 9, 16, 14, 16, 10, 16)
"""Keys of each row, of which pooling asks one query; half are padded."""


def start_entropy(subjects: Sequence[Placed], spec: VariantSpec) -> str | None:
    """The mean over seeds, rows, heads and queries, in each place and at each width.

    Returns the sentence of the part that says why, where the mean lies outside.
    """
    outside: list[str] = []
    declared: set[str] = set()
    seen = False
    # a place with small options and with those that were asked for is the same place here, and keys
    # of a layer below start as those of a layer's own do
    places = {
        replace(one.placement, smallest=False): one for one in subjects if one.slot.link is None
    }
    for placement, placed in places.items():
        for width in WIDTHS:
            fresh = [
                build_subject(spec, placement, placed.variant.impl, fresh=seed, width=width)
                for seed in SEEDS
            ]
            declared |= _declared(fresh[0])
            shares = torch.cat([_shares(one, seed) for seed, one in enumerate(fresh)])
            if not shares.numel():
                continue
            seen = True
            mean = float(shares.mean())
            if not LOW <= mean <= HIGH + ROUNDING:
                outside.append(
                    f"{mean:.2g} of the uniform entropy, {fresh[0].where}, width {width}"
                )
    if not seen:
        return "no query sees more than one key, so there is nothing to start"
    why = "; ".join(sorted(declared))
    named = f"weights start with {outside[0]}" if outside else ""
    wanted = f"weights start between {LOW} and {HIGH:.0f}, or a part declares `starts_outside`"
    expect(not outside or bool(why), f"{named}; {wanted}")
    return f"{named}; {why}" if outside else None


def _shares(subject: Placed, seed: int) -> Float[Tensor, " n"]:
    """Entropy of each query with two keys or more, over that of equal weights."""
    question = _states(subject, seed)
    mask = question.source.mask
    assert mask is not None, "the question above has one"
    with torch.no_grad():
        found = answer(subject, question, ReadMode("expected", weights=True)).weights
        assert found is not None, "the rules leave out what gives no weights"
        seen = _seen(subject, question, mask).expand_as(found)
    weights = torch.where(seen, found, 0.0)
    weights = weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    entropy = -torch.special.xlogy(weights, weights).sum(-1)
    count = seen.sum(-1)
    asked = count > 1
    if subject.own:  # queries that are padding have no meaning
        asked = asked & mask[:, None, :]
    return entropy[asked] / count[asked].to(entropy.dtype).log()


def _states(subject: Placed, seed: int) -> Question:
    """States of variance 1, through the projections."""
    slot, heads = subject.slot, subject.slot.heads
    rng = torch.Generator().manual_seed(seed)
    rows = len(LENGTHS)
    normal = normal_draws(rng)
    queries = KEYS if subject.own else 1 if subject.regime == "pool" else QUERIES
    asked = normal(rows, queries, heads.dims.model_width)
    read = asked if subject.own else normal(rows, KEYS, subject.source_width)
    tokens = torch.randint(1, VOCAB, (rows, KEYS), generator=rng)
    with torch.no_grad():
        query = heads.query(asked)
        source: Source = heads.source(read, padding(LENGTHS, KEYS), tokens).written()
        of_keys = {n: one(read).transpose(1, 2) for n, one in maps_of(slot.key_maps).items()}
        inputs = {name: one(asked) for name, one in maps_of(slot.query_maps).items()}
    source = replace(source, extras=of_keys)
    return Question(
        query,
        source,
        normal(rows, queries, WORD_WIDTH),
        inputs,
        subject.told_relations,
    )


def _seen(
    subject: Placed, question: Question, mask: Bool[Tensor, "B S"]
) -> Bool[Tensor, "#B #Hq #L S"]:
    """Keys that a query may see: real, not later, and within the window of a chain."""
    seen = mask[:, None, None, :]
    causal = subject.regime == "causal"
    if causal:
        seen = seen & torch.ones(KEYS, KEYS, dtype=torch.bool).tril()
    variant = subject.variant
    if isinstance(variant, Chain):
        call = Call(
            query=variant.turn(question.query, 0),
            memory=variant.receive(question.source),
            offset=0,
            causal=causal,
            read="expected",
            noise=None,
            progress=1.0,
            extras=question.extras(),
            edit=None,
        )
        window, _ = variant.window(call)
        seen = seen if window is None else seen & window
    return seen


def _declared(subject: Placed) -> set[str]:
    """What the parts of a variant, its heads among them, say of their start."""
    parts = [part for part in subject.slot.modules() if isinstance(part, Starting)]
    return {part.starts_outside for part in parts if part.starts_outside}
