"""Streaming equals hard decoding, and never touches a key beyond the pointer."""

import copy
from dataclasses import replace

import torch
from torch import Tensor

from bench.api.call import Attended
from bench.api.chain import Chain
from bench.api.source import Memory, tree_map
from bench.conformance.certificate import CheckFailed
from bench.conformance.compare import EXACT, expect, expect_near
from bench.conformance.place import KEYS, QUERIES, Placed, shake
from bench.conformance.question import LENGTHS, Question, ReadMode, ask
from bench.conformance.walkthrough import answer

TRIES = 40
HARD = ReadMode("hard")
STREAM = ReadMode("stream", weights=False)


def stream(subject: Placed) -> None:
    """Decode with a pointer, with NaN planted beyond it; some searches stop, some run off."""
    for attempt in range(TRIES):
        slot = copy.deepcopy(subject.slot)
        shake(slot, attempt, bold=True)
        drawn = replace(subject, slot=slot)
        question = ask(drawn, seed=27 + attempt, lengths=LENGTHS)
        wanted = answer(drawn, question, HARD)
        if bool(wanted.output.any()) and _shows_something(drawn, question):
            _equals_hard(drawn, question, wanted.output)
            _is_a_read(drawn, question, wanted)
            return
    raise CheckFailed(
        f"in {TRIES} draws never both a search that stops and one that runs off the end, "
        "so the comparison would show nothing"
    )


def _shows_something(subject: Placed, question: Question) -> bool:
    """Whether some searches stop, some beyond the first key, and some run off the end."""
    memory = subject.variant.prepare(question.source)
    pointer = torch.zeros(question.query.shape[:2], dtype=torch.long)
    places = []
    for query in question.query.split(1, 2):
        _, pointer, _ = subject.variant.stream(query, memory, pointer)
        places.append(pointer)
    seen = torch.stack(places)
    return bool((seen == KEYS).any()) and bool(((seen > 0) & (seen < KEYS)).any())


def _tolerance(subject: Placed) -> float:
    """Reading one key copies its value; sums over several may be added up in another order."""
    variant = subject.variant
    alone = not isinstance(variant, Chain) or variant.normalizer.lookback == 0
    return 0.0 if alone else EXACT


def _equals_hard(subject: Placed, question: Question, wanted: Tensor) -> None:
    memory = subject.variant.prepare(question.source)
    rows, heads = question.query.shape[:2]
    pointer = torch.zeros(rows, heads, dtype=torch.long)
    for t in range(QUERIES if subject.regime == "cross" else 1):
        query = question.query[:, :, t : t + 1]
        output, after, touched = subject.variant.stream(query, memory, pointer)
        sentence = f"streaming differs from hard decoding at query {t}"
        expect_near(output[:, :, 0], wanted[:, :, t], _tolerance(subject), sentence)
        expect((after >= pointer).all(), f"the pointer moves back at query {t}")
        expect((after <= KEYS).all(), f"the pointer runs past the end at query {t}")
        inside = after < question.source.end[:, None]
        lost = f"a search that ran off the end has a pointer other than S at query {t}"
        expect((inside | (after == KEYS)).all(), lost)
        read = after - pointer + 1
        expect((touched <= read).all(), f"more keys are touched than passed at query {t}")
        poisoned = _poisoned(memory, after)
        again, _, _ = subject.variant.stream(query, poisoned, pointer)
        same = torch.equal(again, output)
        expect(same, f"NaN beyond the pointer reaches the output at query {t}")
        pointer = after


def _is_a_read(subject: Placed, question: Question, wanted: Attended) -> None:
    """What keeps its pointers in the state says the same, and says how far it has read."""
    for split in ((QUERIES,), (1,) * QUERIES) if subject.regime == "cross" else ((1,),):
        found = answer(subject, question, STREAM, split=split)
        sentence = "read=stream differs from read=hard"
        expect_near(found.output, wanted.output, _tolerance(subject), sentence)
        if "touched" in wanted.terms:
            same = torch.equal(found.terms["touched"], wanted.terms["touched"])
            expect(same, "read=stream and read=hard have not read equally far")


def _poisoned(memory: Memory, pointer: Tensor) -> Memory:
    source = memory.source
    heads = pointer.shape[1]
    beyond = torch.arange(source.num_keys) > pointer[:, :, None]

    def plant(leaf: Tensor) -> Tensor:
        if not leaf.is_floating_point() or leaf.dim() < 3:
            return leaf
        # a leaf shared by several heads is poisoned where all of them have stopped
        where = beyond if leaf.shape[1] == heads else beyond.all(1, keepdim=True)
        where = where.reshape(*where.shape, *([1] * (leaf.dim() - 3)))
        return torch.where(where, float("nan"), leaf)

    spoiled = replace(source, key=plant(source.key), value=plant(source.value))
    return Memory(spoiled, tree_map(plant, memory.parts))
