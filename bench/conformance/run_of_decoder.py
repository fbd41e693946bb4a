"""A decoder's run around a variant, drawn at random, for outputs and losses to look at.

The weights, terms and values are those that the variant gives to a question. Everything that an
output or a loss can read is a leaf of its own, so that gradients in each can be compared.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from bench.api import registry
from bench.api.batch import Batch, Text
from bench.api.call import Attended, Read
from bench.api.capabilities import Capability, part_of
from bench.api.output import OutputSizes
from bench.api.selector import Selector
from bench.api.source import Memory, Source, State
from bench.api.trace import Emit, Terms, Trace
from bench.conformance.place import VOCAB, Placed
from bench.conformance.question import ReadMode, ask, cut, normal_draws
from bench.conformance.walkthrough import answer

KEYS, STEPS, STATES, EMBEDDED, HIDDEN = 5, 4, 3, 2, 8
LENGTHS = (5, 2, 4, 1, 5, 3)
"""Keys of each row; where keys are the queries' own sequence, targets too."""
TARGETS = (4, 3, 1, 2, 4, 3)
"""Targets of each row."""
WORDS, EXTRA = 11, 6
"""Target vocabulary, and ids beyond it: the source has words of `VOCAB` kinds."""
SIZES = OutputSizes(vocab=WORDS, states=STATES, context=0, embedded=EMBEDDED, unk=3)


OF_A_SOURCE: frozenset[Capability] = frozenset(
    {"source_tokens", "source_states", "gold_alignment", "selection", "reversible_pairs"}
)
"""What a batch says of its source; the runs of causal places have none."""


def finds_its_source(axis: str, selector: Selector, subject: Placed) -> bool:
    """Whether a run of a place has what an output or a loss reads of a source."""
    needs = part_of(registry.find(axis, selector.name).target).needs
    return subject.regime != "causal" or not needs & OF_A_SOURCE


class Example(NamedTuple):
    """What outputs and losses see of one batch, or of one example without padding."""

    trace: Trace
    batch: Batch


@dataclass(frozen=True)
class Run:
    """One batch, and what can be differentiated in it."""

    whole: Example
    leaves: dict[str, Tensor]
    sizes: OutputSizes
    emit: Emit

    @property
    def rows(self) -> int:
        """Examples in the batch."""
        return self.whole.batch.mask.shape[0]

    def example(self, first: int, copies: int = 1) -> Example:
        """One example without its padding: one row, or several that are draws of it."""
        trace, batch = self.whole
        rows = slice(first, first + copies)
        steps = int(batch.mask[rows].sum(1).max())
        real = batch.sources[0].mask if batch.sources else batch.mask
        assert real is not None, "a run has padding"
        keys = int(real[rows].sum(1).max())
        return Example(_cut_trace(trace, rows, steps, keys), _cut_batch(batch, rows, steps, keys))


class Attention(NamedTuple):
    """What the variant said to a question, and the question's source."""

    subject: Placed
    attended: Attended
    source: Source


def run_of_decoder(
    subject: Placed,
    *,
    read: Read = "expected",
    seed: int = 41,
    copies: int = 1,
    turned: bool = False,
) -> Run:
    """Draw a run in float64.

    Args:
        subject: The variant in its place.
        read: How the variant reads.
        seed: Of all numbers.
        copies: Rows that follow each other and are the same example, in their source and lengths.
        turned: Whether sources are as long as the targets of other runs, as in the other direction.
    """
    sizes_of = (
        ((TARGETS, STEPS), (LENGTHS, KEYS)) if turned else ((LENGTHS, KEYS), (TARGETS, STEPS))
    )
    (sources, keys), (asked, steps) = sizes_of
    lengths = [length for length in sources for _ in range(copies)]
    targets = [length for length in asked for _ in range(copies)]
    question = ask(subject, seed=seed, rows=len(lengths), queries=steps, keys=keys, lengths=lengths)
    with torch.no_grad():
        found = answer(subject, question, ReadMode(read, subject.weights))
    attention, steps = Attention(subject, found, question.source), question.query.shape[2]
    targets = lengths if subject.own else [min(length, steps) for length in targets]
    rng = torch.Generator().manual_seed(seed)
    leaves = _leaves(rng, attention, (len(targets), steps))
    trace = _trace(attention, leaves)
    memory = trace.memories[0]
    sizes = SIZES._replace(context=trace.context.shape[2], source_vocab=VOCAB)
    if memory is not None:
        _, heads, _, width = memory.source.value.shape
        sizes = sizes._replace(source=heads * width)
    batch = _batch(rng, memory, steps, targets)
    if copies > 1:
        batch = batch.select(torch.arange(len(targets)) // copies * copies)
    return Run(Example(trace, batch), leaves, sizes, _output_layer(rng, sizes))


def _leaves(
    rng: torch.Generator, attention: Attention, shape: tuple[int, int]
) -> dict[str, Tensor]:
    """Everything that can be differentiated, by its name in sentences."""
    subject, attended, source = attention
    found = {f"the term {name}": term for name, term in attended.terms.items()}
    if attended.weights is not None:
        found["the weights"] = attended.weights
    if subject.regime != "causal":
        found["the values"] = source.value
    with torch.no_grad():
        found["the context"] = subject.slot.heads.merge(attended.output)
    for name, width in (("the states", STATES), ("the embedded words", EMBEDDED)):
        found[name] = torch.randn(*shape, width, generator=rng, dtype=torch.float64)
    return {name: leaf.detach().clone().requires_grad_() for name, leaf in found.items()}


def _trace(attention: Attention, leaves: dict[str, Tensor]) -> Trace:
    parts = leaves["the states"], leaves["the context"], leaves["the embedded words"]
    subject, attended, source = attention
    weights = leaves.get("the weights")
    if weights is not None:
        # no loss can change the weight of padding, so its gradient there does not matter
        weights = torch.where(source.key_mask()[:, None, None], weights, 0.0)
    terms = {name: leaves[f"the term {name}"] for name in attended.terms}
    seen = Attended(attended.output, weights, State(), terms)
    if subject.regime == "causal":
        return Trace(*parts, (seen,), (None,))
    return Trace(*parts, (seen,), (Memory(replace(source, value=leaves["the values"])),))


def _output_layer(rng: torch.Generator, sizes: OutputSizes) -> Emit:
    """An output layer with one hidden layer, so that words and states interact."""
    normal = normal_draws(rng)
    of_states, of_embedded = normal(STATES, HIDDEN), normal(EMBEDDED, HIDDEN)
    of_context, last = normal(sizes.context, HIDDEN), normal(HIDDEN, WORDS)

    def emit(states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        hidden = states @ of_states + context @ of_context + embedded @ of_embedded
        return torch.tanh(hidden) @ last

    return emit


def _batch(
    rng: torch.Generator,
    memory: Memory | None,
    steps: int,
    targets: list[int],
) -> Batch:
    rows = len(targets)
    mask = torch.arange(steps) < torch.tensor(targets)[:, None]
    said = torch.randint(1, WORDS + EXTRA, (rows, steps), generator=rng)
    sources: tuple[Text, ...] = ()
    extended, gold = None, None
    if memory is not None:
        real, tokens = memory.source.key_mask(), memory.source.tokens
        assert tokens is not None, "a question has some"
        extended = torch.where(real, torch.where(tokens == SIZES.unk, SIZES.eos, tokens), 0)
        extended[:, 1] = torch.where(real[:, 1], extended[:, 0], 0)  # a word that comes twice
        # every other target is a word of the source
        places = torch.arange(steps) % memory.source.length[:, None]
        said = torch.where(torch.arange(steps) % 2 == 0, extended.gather(1, places), said)
        sources = (Text(extended, real),)
        drawn = torch.rand(rows, steps, real.shape[1], generator=rng, dtype=torch.float64)
        drawn = torch.where(real[:, None] & mask[:, :, None], drawn, 0.0)
        drawn[:, 1:2] = 0  # a target without a link
        gold = drawn / drawn.sum(-1, keepdim=True).clamp_min(1e-9)
    known = torch.where(said < WORDS, said, SIZES.unk)
    begin = torch.full((rows, 1), SIZES.bos)
    return Batch(
        sources,
        inputs=torch.cat((begin, known[:, :-1]), 1),
        targets=torch.where(mask, said, 0),
        mask=mask,
        extended=extended,
        num_extra=EXTRA,
        gold=gold,
    )


def with_terms_of_source(run: Run, names: tuple[str, ...], seed: int = 43) -> Run:
    """The same run behind an encoder that says these numbers of each token of its source."""
    rng = torch.Generator().manual_seed(seed)
    real = run.whole.batch.sources[0].mask
    assert real is not None, "a run has padding"
    drawn = {
        name: torch.rand(real.shape, generator=rng, dtype=torch.float64).requires_grad_()
        for name in names
    }
    terms: Terms = {
        **{name: torch.where(real, term, 0.0) for name, term in drawn.items()},
        "real": real.double(),
    }
    leaves = {**run.leaves, **{f"the source's {name}": term for name, term in drawn.items()}}
    trace = run.whole.trace._replace(source_terms=(terms,))
    return replace(run, whole=Example(trace, run.whole.batch), leaves=leaves)


def _cut_trace(trace: Trace, rows: slice, steps: int, keys: int) -> Trace:
    attended = tuple(
        found._replace(
            output=found.output[rows, :, :steps],
            weights=None if found.weights is None else found.weights[rows, :, :steps, :keys],
            terms={name: term[rows, :steps] for name, term in found.terms.items()},
        )
        for found in trace.attended
    )
    memories = tuple(
        None
        if memory is None
        else Memory(replace(cut(memory.source, rows=rows, keys=slice(0, keys)), mask=None))
        for memory in trace.memories
    )
    return Trace(
        trace.states[rows, :steps],
        trace.context[rows, :steps],
        trace.embedded[rows, :steps],
        attended,
        memories,
        tuple({n: t[rows, :keys] for n, t in terms.items()} for terms in trace.source_terms),
    )


def _cut_batch(batch: Batch, rows: slice, steps: int, keys: int) -> Batch:
    return replace(
        batch,
        sources=tuple(Text(text.tokens[rows, :keys], None) for text in batch.sources),
        inputs=batch.inputs[rows, :steps],
        targets=batch.targets[rows, :steps],
        mask=batch.mask[rows, :steps],
        extended=None if batch.extended is None else batch.extended[rows, :keys],
        gold=None if batch.gold is None else batch.gold[rows, :steps, :keys],
    )
