"""Shapes, purity, randomness and options."""

from collections.abc import Mapping
from dataclasses import fields

import torch
from torch import Tensor

from bench.api import registry
from bench.api.call import AttendOptions
from bench.api.chain import Chain
from bench.api.config import Choices, Range, build_config, default_of, search_ranges
from bench.api.errors import BenchError, InvalidConfig
from bench.api.loading import load_package
from bench.api.noise import Noise
from bench.api.resolve import VariantSpec, resolve
from bench.api.selector import parse
from bench.api.source import Memory, State
from bench.conformance.below import Handed, draw_below
from bench.conformance.certificate import CheckFailed
from bench.conformance.checked_energies import energies_of_the_contract
from bench.conformance.compare import LOOPS, expect, expect_near, expect_same, leaves_of
from bench.conformance.place import (
    KEYS,
    QUERIES,
    ROWS,
    VOCAB,
    WEIGHTED,
    WORD_WIDTH,
    Placed,
)
from bench.conformance.question import LENGTHS, Question, ReadMode, ask, every_mode, extras, modes
from bench.conformance.walkthrough import Walkthrough, answer


def shapes(subject: Placed) -> None:
    """Outputs, weights, terms, memory and state have the shapes of the contract."""
    question = ask(subject, lengths=LENGTHS)
    _, heads, length, _ = question.query.shape
    for mode in every_mode(subject):
        path = Walkthrough(subject, question, mode)
        with energies_of_the_contract(subject.variant, f"{mode}"):
            path.step(length)
        found = path.joined()
        width = subject.slot.heads.dims.value_width
        _has_shape(found.output, (ROWS, heads, length, width), f"{mode}: the output")
        expect(mode.weights or path.found[0].weights is None, f"{mode}: weights nobody wanted")
        if found.weights is not None:
            # maps and scores of alignment would take them for what they are not
            expect(_says_of_weights(subject), f"{mode}: gives weights, though no part says so")
            _has_shape(found.weights, (ROWS, heads, length, KEYS), f"{mode}: the weights")
        for name, term in found.terms.items():
            _has_shape(term, (ROWS, length), f"{mode}: the term {name!r}")
        for leaf in leaves_of(found.state.carried):
            expect(
                leaf.shape[:1] == (ROWS,), f"{mode}: a leaf of the state has no row for each row"
            )
    _through_heads(subject)


def _says_of_weights(subject: Placed) -> bool:
    """Whether a part says that there are weights, or that what it gives are none, as raw scores."""
    variant = subject.variant
    parts = variant.components if isinstance(variant, Chain) else (variant,)
    return bool(subject.gives & WEIGHTED) or any("weights" in part.removes for part in parts)


def _has_shape(found: Tensor, wanted: tuple[int, ...], what: str) -> None:
    shape = tuple(found.shape)
    expect(shape == wanted, f"{what} has shape {shape}, not {wanted}")


def _through_heads(subject: Placed) -> None:
    slot, own = subject.slot, subject.own
    rng = torch.Generator().manual_seed(23)
    queries = KEYS if own else 1 if subject.regime == "pool" else QUERIES
    width = slot.heads.dims.model_width
    x = torch.randn(ROWS, queries, width, generator=rng, dtype=torch.float64)
    tokens = torch.randint(1, VOCAB, (ROWS, KEYS), generator=rng)
    words = torch.randn(ROWS, queries, WORD_WIDTH, generator=rng, dtype=torch.float64)
    told = extras(subject, words, tokens)
    call: AttendOptions = {"want_weights": subject.weights, "extras": told}
    call["noise"] = Noise(1)  # for those that draw even when they are scored
    if own:
        given = (x, None, tokens)
        below = Handed(subject, draw_below(subject, None, tokens)).next(slice(None))
        output, _ = slot.attend(x, None, slot.start(None, x), own=given, below=below, **call)
    else:
        y = torch.randn(ROWS, KEYS, subject.source_width, generator=rng, dtype=torch.float64)
        memory = slot.prepare(y, None, tokens)
        output, _ = slot.attend(x, memory, slot.start(memory, x), **call)
    _has_shape(output, (ROWS, queries, slot.output_width), "through the heads, the output")


def memory_pure(subject: Placed) -> None:
    """Attention changes neither what it was given, nor its memory, nor the state it was given."""
    question = ask(subject, lengths=LENGTHS)
    for mode in modes(subject):
        path = Walkthrough(subject, question, mode)
        for count in [1] * min(2, question.query.shape[2]):
            _leaves_alone(path, count, f"{mode}")
        with torch.no_grad():  # other code may run there
            path = Walkthrough(subject, question, mode)
            _leaves_alone(path, question.query.shape[2], f"{mode}, all queries without gradients")
    before = _watched(None, State(), question)
    subject.variant.receive(question.source)
    _expect_unchanged(before, "preparing the memory: ")


def _leaves_alone(path: Walkthrough, count: int, how: str) -> None:
    before = _watched(path.memory, path.state, path.question)
    path.step(count)
    _expect_unchanged(before, f"{how}: ")


def _expect_unchanged(before: Mapping[str, tuple[Tensor, Tensor, int]], how: str) -> None:
    for name, (leaf, copy, version) in before.items():
        same = torch.equal(leaf, copy) and leaf._version == version
        expect(same, f"{how}{name} was changed in place")


def _watched(
    memory: Memory | None, state: State, question: Question
) -> dict[str, tuple[Tensor, Tensor, int]]:
    source = question.source
    assert source.mask is not None, "rows differ in length"
    assert source.tokens is not None, "a question has some"
    found = {"the mask": source.mask, "the tokens": source.tokens, "the words": question.words}
    found |= {f"the {name}": leaf for name, leaf in question.leaves().items()}
    caches = {"the memory": memory, "the cache": state.cache}
    for name, cache in caches.items():
        if cache is not None:
            found |= {f"{name} ({i})": leaf for i, leaf in enumerate(leaves_of(cache.parts))}
            found |= {f"the key of {name}": cache.source.key}
            found |= {f"the value of {name}": cache.source.value}
    found |= {f"the given state ({i})": leaf for i, leaf in enumerate(leaves_of(state.carried))}
    return {n: (leaf, leaf.detach().clone(), leaf._version) for n, leaf in found.items()}


SEEDS = range(1, 13)
"""Seeds that training is asked with."""


def determinism(subject: Placed) -> None:
    """Only training draws, only from the noise it is given, and the same from the same seed."""
    question = ask(subject, lengths=LENGTHS)
    for mode in every_mode(subject):
        before = torch.get_rng_state()
        one = answer(subject, question, mode, seed=1).output
        two = answer(subject, question, mode, seed=1).output
        untouched = torch.equal(torch.get_rng_state(), before)
        expect(untouched, f"{mode}: draws from torch's global generator")
        expect_same(one, two, mode, "two equal calls differ")
    for weights in (True, False) if subject.weights else (False,):
        _draws_where_it_says(subject, question, weights=weights)
    _is_scored_as_it_trains(subject, question)
    default = subject.variant.default_read
    known = default in (*subject.variant.reads, "expected")
    expect(known, f"is scored by `{default}`, which is not among its reads")
    expect(default != "train", "is scored by `train`, whose draws are for training alone")


def _draws_where_it_says(subject: Placed, question: Question, *, weights: bool) -> None:
    """Training draws if it is named, and what is not named reads as `expected` does."""
    trained, *others = (
        answer(subject, question, ReadMode("train", weights), seed=seed).output for seed in SEEDS
    )
    expected = answer(subject, question, ReadMode("expected", weights)).output
    how = "" if weights else " without weights"
    if "train" in subject.variant.reads:
        # where one key is far ahead, most seeds draw it; one that does not is enough
        sentence = f"names `train` among its reads, but no other seed changes anything{how}"
        expect(any(not torch.equal(trained, other) for other in others), sentence)
    else:
        sentence = f"does not name `train` among its reads, but it differs from `expected`{how}"
        expect(all(torch.equal(one, expected) for one in (trained, *others)), sentence)
    if "hard" not in subject.variant.reads:
        hard = answer(subject, question, ReadMode("hard", weights)).output
        sentence = f"does not name `hard` among its reads, but it differs from `expected`{how}"
        expect(torch.equal(hard, expected), sentence)


def _is_scored_as_it_trains(subject: Placed, question: Question) -> None:
    """Networks are scored after `eval()`; what a call reads is said by `read` alone."""
    for mode in modes(subject):
        trained = answer(subject, question, mode, seed=1).output
        with subject.scored():
            scored = answer(subject, question, mode, seed=1).output
            with torch.no_grad():  # other code may run there
                plain = answer(subject, question, mode, seed=1).output
        sentence = "differs after `eval()`, which is how networks are scored"
        expect(torch.equal(trained, scored), f"{mode}: {sentence}")
        expect_near(plain, trained, LOOPS, f"{mode}: {sentence}, without gradients")


PLACEHOLDER = "The name that tables print"
"""Title that the templates of `bench new` begin with."""


def config(spec: VariantSpec) -> str | None:
    """Defaults lie in their search ranges, the selector round-trips, a typo is refused.

    Returns a sentence where the title is still that of a template.
    """
    written = spec.canonical
    expect(parse(written.show()) == written, f"{written} does not read back as itself")
    again = resolve(parse(written.show())).canonical
    expect(again == written, f"{written} resolves to {again}")
    try:
        resolve(f"{spec.name}[no_such_option=1]")
    except InvalidConfig as error:
        expect("no_such_option" in str(error), f"an unknown option is refused by: {error}")
    else:
        expect(False, "an unknown option is not refused")
    parts = [(axis, s.name) for axis, chosen in spec.axes.items() for s in chosen]
    parts += [] if spec.mechanism is None else [("mechanism", spec.mechanism.name)]
    for axis, name in parts:
        if name != "auto":
            _defaults_in_range(axis, name)
    _has_its_default_task(spec)
    if spec.registered.title == PLACEHOLDER:
        return f"{spec.name} still has the title {PLACEHOLDER!r} of its template; tables print it"
    return None


def _has_its_default_task(spec: VariantSpec) -> None:
    """Plans without names run it, for which somebody else would get the error."""
    declared = spec.registered.default_task
    if declared is None or not declared.task:
        return
    load_package("tasks")
    for axis, text in (("task", declared.task), ("backbone", declared.backbone)):
        if not text:
            continue
        try:
            asked = parse(text)
            build_config(registry.find(axis, asked.name).config, asked.options, asked.name)
        except BenchError as error:
            which = f"{spec.name} declares the default {axis} {text!r}"
            raise CheckFailed(f"{which}, but {error}") from error


def _defaults_in_range(axis: str, name: str) -> None:
    cls = registry.find(axis, name).config
    cls()  # every option has a default, and the defaults are legal together
    ranges = search_ranges(cls)
    for option in fields(cls):
        value = default_of(cls, option.name)
        if option.name in ranges and value is not None:
            inside = _inside(value, ranges[option.name])
            sentence = f"{name}: the default {option.name}={value} is outside of its search range"
            expect(inside, sentence)


def _inside(value: object, search: Range) -> bool:
    if isinstance(search, Choices):
        return value in search.options
    return isinstance(value, int | float) and search.low <= value <= search.high
