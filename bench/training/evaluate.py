"""Ask a trained system about a split, and turn its answers into rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional

from bench.api.answer import Answer, Picture
from bench.api.backbone import Backbone, Generated
from bench.api.batch import Batch, Sizes
from bench.api.errors import Diverged
from bench.api.metric import Scored
from bench.api.noise import DRAWS
from bench.api.task import Split, Task
from bench.api.trace import Mode
from bench.training.system import negative_log_likelihood, predicted_values
from results.row import Row

Clock = Callable[[], float]
LONGEST = "longest output of the last batch"
"""Title of the map that is not of the batch in the middle."""


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
    task: Task,
    backbone: Backbone,
    split: Split,
    device: torch.device,
    clock: Clock,
    *,
    want_weights: bool = True,
) -> Evaluated:
    """Answer every batch of a split and score the answers.

    Args:
        task: The task.
        backbone: The network.
        split: What to answer.
        device: Where the network is.
        clock: Time of decoding (s).
        want_weights: Whether answers hold attention weights, where there are any.

    Raises:
        Diverged: The network answers with what is no number, of which the best word is a word, too.
    """
    training = backbone.training
    backbone.eval()
    answers: list[Answer] = []
    seconds, tokens = 0.0, 0
    weighed = want_weights or "weights" in backbone.output.needs
    with torch.no_grad():
        for batch in task.evaluation(split):
            here = backbone.arrange(batch.to(device))
            answer = _teacher_forced(task, backbone, here, want_weights=weighed)
            _expect_numbers(answer, split)
            if task.decodes or backbone.output.sequence_only:
                start = clock()
                said = backbone.generate(here, task.sizes.max_length, Mode(noise=DRAWS))
                seconds += clock() - start
                tokens += sum(_steps(row, task.sizes) for row in said.tokens)
                answer = replace(answer, generated=said.tokens)
                if said.read_shares is not None:
                    answer = replace(answer, read_shares=said.read_shares)
                elif answer.read_shares is not None:
                    shares = _read_for(backbone, here, said, task.sizes)
                    answer = replace(answer, read_shares=shares)
            answers.append(answer)
    backbone.train(training)
    return Evaluated(tuple(answers), tuple(task.scores(split, answers)), seconds, tokens)


def _teacher_forced(
    task: Task, backbone: Backbone, batch: Batch, *, want_weights: bool = True
) -> Answer:
    trace = backbone(batch, Mode(noise=DRAWS, want_weights=want_weights))
    predicted, nll, values = None, None, None
    if batch.values is not None:
        values = predicted_values(backbone, trace).cpu()
    if not backbone.output.sequence_only:
        nll = negative_log_likelihood(backbone, trace, batch).cpu()
        if task.needs_predictions and values is None:
            predicted = backbone.output.log_probs(trace, backbone.emit, batch).argmax(-1).cpu()
    weights = None
    if trace.attended and trace.attended[0].weights is not None and backbone.aligns(batch):
        weights = trace.weights.cpu()
    share = backbone.output.read_share(trace, batch)
    shares = _by_row(share, batch.mask.sum(1).tolist())
    on_cpu = batch.to(torch.device("cpu"))
    selected = next((t["selected"].cpu() for t in trace.source_terms if "selected" in t), None)
    return Answer(on_cpu, predicted, nll, None, weights, shares, selected, values)


def _expect_numbers(answer: Answer, split: Split) -> None:
    """Raise where something that is scored is NaN; a likelihood may well be zero."""
    for found in (answer.nll, answer.values):
        if found is not None and bool(found[answer.batch.mask].isnan().any()):
            raise Diverged(f"the network answered {split} with NaN.")


def _read_for(
    backbone: Backbone, batch: Batch, said: Generated, sizes: Sizes
) -> tuple[tuple[float, ...], ...] | None:
    """Shares of the source that were read for the words said: heard again, all at once."""
    heard = _heard(batch, said, sizes)
    trace = backbone(heard, Mode(noise=DRAWS))
    return _by_row(backbone.output.read_share(trace, heard), heard.mask.sum(1).tolist())


def _steps(words: Sequence[int], sizes: Sizes) -> int:
    """How many symbols were decoded: the words and EOS, which one that was cut has not said."""
    return min(len(words) + 1, sizes.max_length)


def _heard(batch: Batch, said: Generated, sizes: Sizes) -> Batch:
    """The batch with what was said in the place of its targets, and what was heard of it before."""
    targets, mask = _laid_out(said.tokens, batch, sizes)
    heard = targets if said.heard is None else _laid_out(said.heard, batch, sizes)[0]
    first = torch.full_like(targets[:, :1], sizes.bos)
    inputs = torch.cat((first, heard[:, :-1]), 1)
    inputs = torch.where(inputs < sizes.target_vocab, inputs, sizes.unk)
    told = replace(batch, inputs=inputs, targets=targets, mask=mask)
    return replace(told, gold=None, features_gold=None)


def _laid_out(
    rows: tuple[tuple[int, ...], ...], batch: Batch, sizes: Sizes
) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """Words of each row and EOS, where one was decoded, and which places hold them."""
    lengths = [_steps(row, sizes) for row in rows]
    found = batch.targets.new_zeros(len(rows), max(lengths))
    for row, (words, length) in enumerate(zip(rows, lengths, strict=True)):
        found[row, :length] = found.new_tensor([*words, sizes.eos][:length])
    places = torch.arange(found.shape[1], device=found.device)
    return found, places < found.new_tensor(lengths)[:, None]


def _by_row(shares: Tensor | None, lengths: Sequence[int]) -> tuple[tuple[float, ...], ...] | None:
    """Shares of the words that a row really has."""
    if shares is None:
        return None
    rows = zip(shares.tolist(), lengths, strict=True)
    return tuple(tuple(row[:length]) for row, length in rows)


def score_rows(scores: Sequence[Scored], split: Split) -> list[Row]:
    """Rows of a scored split."""
    return [Row(metric=s.metric, value=s.value, axis=s.axis, x=s.x, split=split) for s in scores]


def example_maps(task: Task, backbone: Backbone, device: torch.device) -> list[dict[str, object]]:
    """Weights over the task's own examples: of what the network says, where it says something."""
    batch = task.examples()
    if batch is None:
        return []
    training = backbone.training
    backbone.eval()
    with torch.no_grad():
        here = backbone.arrange(batch.to(device))
        if task.decodes or backbone.output.sequence_only:
            said = backbone.generate(here, task.sizes.max_length, Mode(noise=DRAWS))
            here = _heard(here, said, task.sizes)
        answer = _teacher_forced(task, backbone, here)
    backbone.train(training)
    if answer.weights is None:
        return []
    found = [_map(task, answer, row) for row in range(len(batch.targets))]
    for row, one in enumerate(found):
        one["said"] = _said(task, answer, row)
        one["sentences"] = _sentences(answer.batch, row)
        one["title"] = batch.names[row] if batch.names else one["title"]
        one["reference"] = batch.references[row] if batch.references else ""
        one["output"] = _output(task, answer, row)
        one["picture"] = _picture(task.picture(answer.batch, row))
    return found


def _sentences(batch: Batch, row: int) -> list[int] | None:
    """Number of the sentence of each word of the source, where sentences matter."""
    text = batch.sources[0] if batch.sources else None
    if text is None or text.segments is None or batch.stride > 1 or batch.beside != (0, 0):
        return None
    real = text.segments[row] if text.mask is None else text.segments[row][text.mask[row]]
    return [int(number) for number in real.tolist()]


def _output(task: Task, answer: Answer, row: int) -> str:
    """What was said of one example, as text."""
    return " ".join(_said(task, answer, row))


def _said(task: Task, answer: Answer, row: int) -> list[str]:
    """What was said at each scored place of one example: a word, or numbers."""
    mask = answer.batch.mask[row]
    if answer.values is not None:
        lines = task.in_units(answer.values[row][mask]).tolist()
        return [" ".join(f"{value:.3g}" for value in line) for line in lines]
    said = answer.batch.targets if task.decodes or answer.predicted is None else answer.predicted
    return _words(task, answer.batch, row, said[row][mask].tolist(), source=False)


def _picture(picture: Picture | None) -> dict[str, object] | None:
    if picture is None:
        return None
    gray = [[round(value, 3) for value in line] for line in picture.gray]
    return {"gray": gray, "grid": list(picture.grid)}


def _words(task: Task, batch: Batch, row: int, ids: Sequence[int], *, source: bool) -> list[str]:
    """Names of ids, those beyond the vocabulary by the words of their row."""
    extra = batch.extra_words[row] if batch.extra_words else ()
    vocab = task.sizes.target_vocab
    return [
        extra[number - vocab]
        if 0 <= number - vocab < len(extra)
        else task.tokens([number], source=source)[0]
        for number in ids
    ]


def attention_maps(task: Task, answers: Sequence[Answer], count: int) -> list[dict[str, object]]:
    """Some maps with their gold alignment: of the batch in the middle, and the longest of the last.

    Batches of a task go from short to long.
    """
    usable = [a for a in answers if a.weights is not None]
    if not usable:
        return []
    middle, last = (len(usable) - 1) // 2, len(usable) - 1
    longest = int(usable[last].batch.mask.sum(1).argmax())
    rows = range(min(count - 1, len(usable[middle].batch.targets)))
    # the batch in the middle may be the last one
    places = dict.fromkeys([*((middle, row) for row in rows), (last, longest)])
    found = [_map(task, usable[place], row) for place, row in places]
    if last != middle:
        # rows are numbered in every batch anew, and a figure is of all maps with one title
        found[-1]["title"] = LONGEST
    return found


def _map(task: Task, answer: Answer, row: int) -> dict[str, object]:
    batch, weights = answer.batch, answer.weights
    assert weights is not None
    mask = batch.mask[row]
    steps = mask if batch.sources else torch.ones_like(mask)
    if batch.sources:
        source, real = _columns(task, batch, row, weights.shape[2])
        query = _words(task, batch, row, batch.targets[row][steps].tolist(), source=False)
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
    names = _words(task, batch, row, words.tolist(), source=True)
    before, behind = batch.beside
    beside = task.feature_names(batch, row)
    names = beside[:before] + names + beside[before : before + behind]
    names = [" ".join(names[at : at + stride]) for at in range(0, len(names), stride)]
    # weights over several sources go on behind the first one
    real = batch.state_mask()[row]
    return names, functional.pad(real, (0, width - len(real)))


def _rounded(x: Tensor) -> list[list[float]]:
    return [[round(value, 4) for value in line] for line in x.tolist()]
