"""Outputs against plain loops: probabilities, likelihoods and their gradients, word by word."""

import torch
from torch import Tensor

from bench.api import registry
from bench.api.errors import Refused
from bench.api.output import OUTPUTS, Output
from bench.api.resolve import VariantSpec
from bench.api.trace import Trace
from bench.conformance.certificate import CheckSkipped
from bench.conformance.compare import LOOPS, expect, expect_near, gradients, leaves_of
from bench.conformance.place import Placed, shake
from bench.conformance.run_of_decoder import Run, finds_its_source, run_of_decoder


def output(subject: Placed, spec: VariantSpec) -> None:
    """Each row of a padded batch equals the loops over the unpadded example; all words sum to one.

    Args:
        subject: The attention that the output reads.
        spec: Names the output.
    """
    try:
        _check(subject, spec)
    except Refused as reason:
        raise CheckSkipped(str(reason)) from None


def _check(subject: Placed, spec: VariantSpec) -> None:
    if not finds_its_source("output", spec.axes["output"][0], subject):
        raise CheckSkipped("its output reads a source, and under causality there is none")
    run = run_of_decoder(subject)
    made = _made(spec, run)
    for training in (False, True):
        made.train(training)
        _likelihoods_equal_the_loops(made, run)
    made.eval()
    _distributions_equal_the_loops(made, run)
    _equals_its_steps(made, run)


def _made(spec: VariantSpec, run: Run) -> Output:
    """The output with parameters drawn, and fitted to the batch where it counts words."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = registry.make(OUTPUTS, spec.axes["output"][0], run.sizes).double()
    shake(made, 47)
    batch = run.whole.batch
    if made.fit_pairs:
        sources = batch.sources[0].tokens.tolist()
        known = torch.where(batch.targets < run.sizes.vocab, batch.targets, run.sizes.unk)
        made.fit(list(zip(sources, known.tolist(), strict=True)))
    return made


def _distributions_equal_the_loops(made: Output, run: Run) -> None:
    found = made.log_probs(run.whole.trace, run.emit, run.whole.batch).exp()
    words = run.sizes.vocab + run.whole.batch.num_extra
    expect(found.shape[-1] == words, f"{found.shape[-1]} words are scored, not {words}")
    total = found.sum(-1)
    expect_near(total, torch.ones_like(total), LOOPS, "probabilities of all words sum to another")
    mine, looped = [], []
    for row in range(run.rows):
        trace, batch = run.example(row)
        wanted = made.oracle(trace, run.emit, batch)
        same = found[row, : wanted.shape[0]]
        expect_near(same, wanted, LOOPS, f"probabilities of row {row} differ from the loops")
        mine.append(same.flatten())
        looped.append(wanted.flatten())
    _same_gradients(made, run, torch.cat(mine), torch.cat(looped), "the probabilities")


def _likelihoods_equal_the_loops(made: Output, run: Run) -> None:
    trace, batch = run.whole
    found = made.nll(trace, run.emit, batch)
    own = made.own_losses(trace, run.emit, batch)
    mine, looped, sums = [], [], dict[str, Tensor]()
    when = "in training" if made.training else "in evaluation"
    for row in range(run.rows):
        example = run.example(row)
        wanted = made.oracle_nll(example.trace, run.emit, example.batch)
        same = found[row] if wanted.dim() == 0 else found[row, : wanted.shape[0]]
        sentence = f"{when}, the likelihood of row {row} differs from the loops"
        expect_near(same, wanted, LOOPS, sentence)
        mine.append(same.reshape(-1))
        looped.append(wanted.reshape(-1))
        for name, term in made.oracle_own_losses(example.trace, run.emit, example.batch).items():
            sums[name] = sums.get(name, torch.zeros_like(term)) + term
    if found.dim() == 2:
        expect(not found[~batch.mask].any(), f"{when}, targets that are not scored cost something")
    _same_gradients(made, run, torch.cat(mine), torch.cat(looped), f"{when}, the likelihood")
    expect(set(own) == set(sums), f"own losses are {sorted(own)}, by the loops {sorted(sums)}")
    for name, term in own.items():
        wanted = sums[name] / batch.mask.sum()
        expect_near(term, wanted, LOOPS, f"{when}, its loss {name!r} (nats per target) differs")
        _same_gradients(made, run, term, wanted, f"{when}, its loss {name!r}")


def _same_gradients(made: Output, run: Run, mine: Tensor, looped: Tensor, what: str) -> None:
    leaves = {**run.leaves, **dict(made.named_parameters())}
    one, two = (gradients(values, tuple(leaves.values())) for values in (mine, looped))
    for name, found, wanted in zip(leaves, one, two, strict=True):
        sentence = f"{what}: the gradient of {name} differs from that of the loops"
        expect_near(found, wanted, LOOPS, sentence)


def _equals_its_steps(made: Output, run: Run) -> None:
    """Decoding says what teacher forcing says."""
    trace, batch = run.whole
    with torch.no_grad():
        whole = made.log_probs(trace, run.emit, batch).exp()
        carried = made.begin(batch, trace.memories)
        for t in range(whole.shape[1]):
            words = batch.inputs[:, t : t + 1]
            said, carried = made.step(_step(trace, t), run.emit, batch, words, carried)
            rows = {len(leaf) for leaf in leaves_of(carried)}
            expect(rows <= {len(words)}, "what is carried between words has not the rows first")
            real = batch.mask[:, t]
            sentence = f"word {t}, said alone, has other probabilities than under teacher forcing"
            expect_near(said.exp()[real, 0], whole[real, t], LOOPS, sentence)


def _step(trace: Trace, t: int) -> Trace:
    at = slice(t, t + 1)
    attended = tuple(
        found._replace(
            output=found.output[:, :, at],
            weights=None if found.weights is None else found.weights[:, :, at],
            terms={name: term[:, at] for name, term in found.terms.items()},
        )
        for found in trace.attended
    )
    return trace._replace(
        states=trace.states[:, at],
        context=trace.context[:, at],
        embedded=trace.embedded[:, at],
        attended=attended,
    )
