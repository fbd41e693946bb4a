"""Ask a trained system about a split, and turn its answers into rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from bench.api.backbone import Backbone, Mode
from bench.api.noise import Noise
from bench.api.task import Answer, Batch, Scored, Sizes, Split, Task
from results.row import Row

Clock = Callable[[], float]
NOT_A_WORD = "▣"
"""Stands for a state that belongs to a picture or the like."""

DRAWS = Noise(0)
"""What mechanisms that sample when they are scored draw from; the same in every evaluation."""


@dataclass(frozen=True)
class Evaluated:
    """Answers to a split and what decoding took."""

    answers: tuple[Answer, ...]
    scores: tuple[Scored, ...]
    decode_seconds: float
    decoded_tokens: int

    def value(self, metric: str) -> float | None:
        """The plain value of a metric."""
        for scored in self.scores:
            if scored.metric == metric and not scored.axis:
                return scored.value
        return None


def evaluate(
    task: Task, backbone: Backbone, split: Split, device: torch.device, clock: Clock
) -> Evaluated:
    """Answer every batch of a split and score the answers."""
    training = backbone.training
    backbone.eval()
    answers: list[Answer] = []
    seconds, tokens = 0.0, 0
    with torch.no_grad():
        for batch in task.evaluation(split):
            here = backbone.arrange(batch.to(device))
            answer = _teacher_forced(task, backbone, here)
            if task.decodes or backbone.output.sequence_only:
                start = clock()
                said = backbone.generate(here, task.sizes.max_length, Mode(noise=DRAWS))
                seconds += clock() - start
                tokens += sum(len(row) + 1 for row in said.tokens)
                answer = replace(answer, generated=said.tokens)
                if answer.read_shares is not None:
                    shares = _read_for(backbone, here, said.tokens, task.sizes)
                    answer = replace(answer, read_shares=shares)
            answers.append(answer)
    backbone.train(training)
    return Evaluated(tuple(answers), tuple(task.score(split, answers)), seconds, tokens)


def _teacher_forced(task: Task, backbone: Backbone, batch: Batch) -> Answer:
    trace = backbone(batch, Mode(noise=DRAWS))
    predicted, nll = None, None
    if not backbone.output.sequence_only:
        nll = backbone.output.nll(trace, backbone.emit, batch).cpu()
        if task.needs_predictions:
            predicted = backbone.output.log_probs(trace, backbone.emit, batch).argmax(-1).cpu()
    weights = None
    if trace.attended and trace.attended[0].weights is not None and backbone.aligns(batch):
        weights = trace.weights.cpu()
    share = backbone.output.read_share(trace, batch)
    shares = _by_row(share, batch.mask.sum(1).tolist())
    on_cpu = batch.to(torch.device("cpu"))
    selected = next((t["selected"].cpu() for t in trace.source_terms if "selected" in t), None)
    return Answer(on_cpu, predicted, nll, None, weights, shares, selected)


def _read_for(
    backbone: Backbone, batch: Batch, said: tuple[tuple[int, ...], ...], sizes: Sizes
) -> tuple[tuple[float, ...], ...] | None:
    """Shares of the source that were read for the words said: heard again, all at once."""
    lengths = [len(row) + 1 for row in said]
    targets = batch.targets.new_zeros(len(said), max(lengths))
    for row, words in enumerate(said):
        targets[row, : len(words) + 1] = targets.new_tensor([*words, sizes.eos])
    first = torch.full_like(targets[:, :1], sizes.bos)
    inputs = torch.cat((first, targets[:, :-1]), 1)
    inputs = torch.where(inputs < sizes.target_vocab, inputs, sizes.unk)
    mask = (
        torch.arange(targets.shape[1], device=targets.device) < targets.new_tensor(lengths)[:, None]
    )
    heard = replace(batch, inputs=inputs, targets=targets, mask=mask, gold=None)
    trace = backbone(heard, Mode(noise=DRAWS))
    return _by_row(backbone.output.read_share(trace, heard), lengths)


def _by_row(shares: Tensor | None, lengths: Sequence[int]) -> tuple[tuple[float, ...], ...] | None:
    """Shares of the words that a row really has."""
    if shares is None:
        return None
    rows = zip(shares.tolist(), lengths, strict=True)
    return tuple(tuple(row[:length]) for row, length in rows)


def score_rows(scores: Sequence[Scored], split: Split) -> list[Row]:
    """Rows of a scored split."""
    return [Row(metric=s.metric, value=s.value, axis=s.axis, x=s.x, split=split) for s in scores]


def attention_maps(task: Task, answers: Sequence[Answer], count: int) -> list[dict[str, object]]:
    """Some maps beside their gold alignment: of a middle length, and one of the longest."""
    usable = [a for a in answers if a.weights is not None]
    if not usable:
        return []
    middle, longest = usable[(len(usable) - 1) // 2], usable[-1]
    rows = range(min(count - 1, len(middle.batch.targets)))
    return [*(_map(task, middle, row) for row in rows), _map(task, longest, 0)]


def _map(task: Task, answer: Answer, row: int) -> dict[str, object]:
    batch, weights = answer.batch, answer.weights
    assert weights is not None
    mask = batch.mask[row]
    steps = mask if batch.sources else torch.ones_like(mask)
    if batch.sources:
        source, real = _columns(task, batch, row, weights.shape[2])
        query = task.tokens(batch.targets[row][steps].tolist(), source=False)
    else:
        real = torch.ones(weights.shape[2], dtype=torch.bool)
        source = task.tokens(batch.inputs[row].tolist(), source=True)
        query = source
    gold = None if batch.gold is None else _rounded(batch.gold[row][steps][:, real])
    return {
        "title": f"example {row + 1}",
        "query": query,
        "source": source,
        "weights": _rounded(weights[row][steps][:, real]),
        "gold": gold,
    }


def _columns(task: Task, batch: Batch, row: int, width: int) -> tuple[list[str], Tensor]:
    """Names of the states of the first source, and which columns of the weights they are."""
    text, stride = batch.sources[0], batch.stride
    shown = (batch.extended if batch.extended is not None else text.tokens)[row]
    words = shown if text.mask is None else shown[text.mask[row]]
    names = task.tokens(words.tolist(), source=True)
    names = [NOT_A_WORD] * batch.beside[0] + names + [NOT_A_WORD] * batch.beside[1]
    names = [" ".join(names[at : at + stride]) for at in range(0, len(names), stride)]
    # weights over several sources go on behind the first one
    real = batch.state_mask()[row]
    return names, functional.pad(real, (0, width - len(real)))


def _rounded(x: Tensor) -> list[list[float]]:
    return [[round(value, 4) for value in line] for line in x.tolist()]
