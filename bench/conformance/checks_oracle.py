"""Vectorized code against plain loops: forward, and gradients by autograd through the loops."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError, gradcheck

from bench.api.call import OracleOptions, Read
from bench.api.chain import Chain
from bench.api.noise import Noise
from bench.api.oracle import chain_oracle
from bench.conformance.compare import (
    LOOPS,
    expect,
    expect_near,
    expect_same_tree,
    gradients,
    greatest_of,
)
from bench.conformance.place import WEIGHTED, Placed
from bench.conformance.question import (
    BEGUN,
    DRAWN,
    TRAINED,
    Question,
    ReadMode,
    ask,
    one_row,
    usual_share,
    with_and_without,
)
from bench.conformance.walkthrough import answer

KEYS, QUERIES = 4, 3
LENGTHS = (4, 2, 1, 3, 4)
"""Keys of each row: more rows than any other size here, so that code for few rows is not all."""
GRADIENT_LENGTHS = (3, 1, 2, 3, 2)
"""The same for gradients; each row draws noise of its own."""


def oracle(subject: Placed) -> None:
    """Every row of a padded batch, and one of a batch without a mask, equals the loops."""
    # code may take another path where nothing is hidden, and bound energies that are large
    largest = max(
        _rows_equal_loops(subject, lengths, larger) for lengths, larger in ((LENGTHS, 1), (None, 4))
    )
    _embeds(subject)
    if "weights" in subject.gives or "weighted_sum" in subject.gives:
        expect(largest > 0, "all outputs are zero, so the comparison shows nothing")


def _rows_equal_loops(subject: Placed, lengths: Sequence[int] | None, larger: float) -> float:
    """Compare each row with the loops over the unpadded example; the largest output."""
    known = (KEYS,) if lengths is None else lengths
    sizes = {"rows": len(known), "queries": QUERIES, "keys": KEYS}
    question = ask(subject, seed=17, **sizes, lengths=lengths, larger=larger)
    largest = 0.0
    for read, share in _reads(subject, question):
        found = {
            mode: answer(subject, question, mode, progress=share)
            for mode in with_and_without(subject, read)
        }
        for row, length in enumerate(known):
            terms: dict[str, Tensor] = {}
            output, weights = loops(
                subject, question, ReadMode(read), row, terms=terms, progress=share
            )
            largest = max(largest, float(output.detach().abs().max()))
            told = weights is not None or not subject.gives & WEIGHTED
            expect(told, "gives weights, and its loops give none to compare them with")
            for mode, attended in found.items():
                queries = output.shape[1]
                sentence = f"{mode}{_when(share)}: row {row} differs from the loops"
                answered = attended.output[row, :, :queries]
                expect_near(answered, output, LOOPS, sentence, greatest_of())
                mine = {name: term[row, :queries] for name, term in attended.terms.items()}
                expect_same_tree(mine, terms, LOOPS, f"{sentence}, in the terms")
                if weights is None or attended.weights is None:
                    continue
                seen = attended.weights[row, :, :queries, :length]
                weighed = f"{sentence}, in the weights"
                expect_near(seen, weights, LOOPS, weighed, greatest_of())
    return largest


def _reads(subject: Placed, question: Question) -> list[tuple[Read, float]]:
    """Reads that may give different numbers, each with the share of training done.

    The beginning of training is one of its own for those that look at the share.
    """
    own = subject.variant.reads
    found: list[tuple[Read, float]] = [(read, usual_share(read)) for read in own]
    if "train" not in own:
        first, last = (
            answer(subject, question, ReadMode("train", weights=False), progress=share).output
            for share in (BEGUN, TRAINED)
        )
        if torch.equal(first, last):
            return found
    return [*found, ("train", BEGUN)]


def _when(share: float) -> str:
    return " when training begins" if share == BEGUN else ""


def _embeds(subject: Placed) -> None:
    """Positions that act before the projection, token by token."""
    if not isinstance(subject.variant, Chain):
        return
    rng = torch.Generator().manual_seed(29)
    width = subject.slot.heads.dims.model_width
    x = torch.randn(2, KEYS, width, generator=rng, dtype=torch.float64)
    for offset in (0, 3):
        found = subject.variant.embed(x, offset)
        for row, place in ((row, place) for row in range(2) for place in range(KEYS)):
            token = x[row, place]
            for position in subject.variant.positions:
                token = position.oracle_embed(token, offset + place)
            sentence = f"the token at place {offset + place} is embedded unlike by the loops"
            expect_near(found[row, place], token, LOOPS, sentence)


def gradients_law(subject: Placed) -> None:
    """Gradients equal finite differences, and those of the loops, in every parameter.

    Training reads draw: there the loops get the same noise, and their gradient is the right one
    even where the output has none of its own (straight-through and stopped parts). Terms are
    compared beside the output, because losses learn from log probabilities of draws through them.
    """
    _finite_differences(subject)
    sizes = {"rows": len(GRADIENT_LENGTHS), "queries": 2, "keys": 3}
    question = ask(subject, seed=19, **sizes, lengths=GRADIENT_LENGTHS)
    for read, share in _reads(subject, question):
        if read in ("expected", "train"):
            _gradients_of_the_loops(subject, question, read, share)


def _gradients_of_the_loops(subject: Placed, question: Question, read: Read, share: float) -> None:
    """Compare the gradients of a padded batch with those of its rows by loops."""
    parameters = dict(subject.variant.named_parameters())
    names = (*question.leaves(), *parameters)
    looped = question.fresh()
    rows, wanted = [], []
    for row in range(len(GRADIENT_LENGTHS)):
        terms: dict[str, Tensor] = {}
        output, _ = loops(subject, looped, ReadMode(read), row, terms=terms, progress=share)
        rows.append(output.shape[1])
        wanted += [output.flatten(), *(terms[name] for name in sorted(terms))]
    two = gradients(torch.cat(wanted), (*looped.leaves().values(), *parameters.values()))
    for mode in with_and_without(subject, read):
        fresh = question.fresh()
        attended = answer(subject, fresh, mode, progress=share)
        how = f"{mode}{_when(share)}"
        found = []
        for row, asked in enumerate(rows):
            found.append(attended.output[row, :, :asked].flatten())
            found += [attended.terms[name][row, :asked] for name in sorted(attended.terms)]
        one = gradients(torch.cat(found), (*fresh.leaves().values(), *parameters.values()))
        for name, mine, loop in zip(names, one, two, strict=True):
            expect(mine.isfinite().all(), f"{how}: the gradient of {name} is not finite")
            sentence = f"{how}: the gradient of {name} differs from that of the loops"
            expect_near(mine, loop, LOOPS, sentence)


def _finite_differences(subject: Placed) -> None:
    question = ask(subject, seed=21, rows=1, queries=2, keys=3).fresh()
    mode = ReadMode("expected", subject.weights)

    def output(*leaves: Tensor) -> Tensor:
        return answer(subject, question.from_leaves(leaves), mode).output

    try:
        gradcheck(output, tuple(question.leaves().values()), fast_mode=True)
    except GradcheckError as error:
        reason = str(error).strip().splitlines()[0]
        expect(False, f"the gradient differs from finite differences: {reason}")


def loops(
    subject: Placed,
    question: Question,
    mode: ReadMode,
    row: int,
    *,
    places: Sequence[int] | None = None,
    terms: dict[str, Tensor] | None = None,
    progress: float | None = None,
) -> tuple[Tensor, Tensor | None]:
    """What the loops answer to one row of a question; some queries of a chain alone.

    Terms, where they are wanted, are filled in. None for `progress` is the usual share of training.
    """
    mask = question.source.mask
    length = question.source.num_keys if mask is None else int(mask[row].sum())
    alone = one_row(subject, question, row, length)
    told = OracleOptions(
        row=row,
        noise=Noise(1) if mode.read in DRAWN else None,
        progress=usual_share(mode.read) if progress is None else progress,
        extras={name: given[0] for name, given in alone.extras().items()},
        terms=terms,
    )
    if places is not None and isinstance(subject.variant, Chain):
        given = subject.variant.turn_by_loops(alone.query[0], alone.source)
        return chain_oracle(subject.variant, *given, mode.read, places=places, **told)
    return subject.variant.answer_by_loops(alone.query[0], alone.source, mode.read, **told)
