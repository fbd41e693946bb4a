"""The axes really combine: random draws over all of them are certified or refused with a sentence.

The draws are kept in `combinations.json`, so that a new component changes none of them; it gets
draws of its own. `BENCH_COMBINATIONS=300` runs all that are kept; without it a fresh machine runs
the first 40. With `--update-golden` their refusals are written again, to be read by hand.
"""

import json
import os
import random
import zlib
from pathlib import Path

import pytest

import variants
from bench.api import registry
from bench.api.axes import ABSENT, CHAIN_AXES, DEFAULTS, STACKED
from bench.api.errors import InvalidConfig, Refused
from bench.api.resolve import resolve
from bench.conformance import as_text, certify

IN_CI = 40
OF_A_NEW_NAME = 3
KEPT_IN = Path(__file__).parent / "combinations.json"
KEPT: dict[str, str] = json.loads(KEPT_IN.read_text(encoding="utf-8"))
"""Selector -> the sentence that refuses it, empty where it runs; reviewed by hand."""
CHECKS = (
    "runs_somewhere",
    "shapes",
    "causality",
    "padding_invariance",
    "batch_invariance",
    "splits",
    "weight_law",
    "dead_rows",
    "oracle",
    "gradients",
    "determinism",
)


def _new_components() -> dict[str, str]:
    """Name -> axis of what may be drawn and is in no draw that is kept: controls are not drawn."""
    variants.load_all()
    text = " ".join(KEPT)
    return {
        name: axis
        for axis in CHAIN_AXES
        for name, known in registry.registrations(axis).items()
        if name not in (DEFAULTS[axis], ABSENT.get(axis)) and name not in text and not known.control
    }


def _draw(rng: random.Random, name: str, axis: str) -> str:
    """A chain with this component, a score of its own and one or two further choices."""
    scores = registry.registrations("score")
    # a control says nothing about keys, so neither do the checks that ask which one is best
    score = rng.choice([name for name in sorted(scores) if not scores[name].control])
    options = {}
    others = [axis for axis in CHAIN_AXES if axis != "score"]
    for other in rng.sample(others, rng.randint(1, 2)):
        known = sorted(set(registry.registrations(other)) - {DEFAULTS[other], ABSENT.get(other)})
        count = 2 if other in STACKED and rng.random() < 0.25 else 1
        options[other] = "+".join(rng.sample(known, min(count, len(known))))
    if rng.random() < 0.25:
        options["head"] = "multi[heads=2]"
    if axis == "score":
        score = name
    else:
        options[axis] = name
    if options.get("normalizer") == "hard_reinforce":
        options["loss"] = "reinforce"  # which is its gradient
    written = ",".join(f"{axis}={value}" for axis, value in sorted(options.items()))
    return f"{score}[{written}]"


def _draws_of_new_components() -> list[str]:
    found: dict[str, None] = {}
    for name, axis in _new_components().items():
        rng = random.Random(zlib.crc32(name.encode()))
        found |= {_draw(rng, name, axis): None for _ in range(OF_A_NEW_NAME)}
    return list(found)


CHOSEN = [*KEPT][: int(os.environ.get("BENCH_COMBINATIONS", IN_CI))]


@pytest.fixture(scope="module")
def expected(request):
    """Expected refusals; `--update-golden` collects them anew and writes them at the end."""
    if not request.config.getoption("--update-golden", default=False):
        yield KEPT
        return
    collected: dict[str, str] = {}
    yield collected
    text = json.dumps({**KEPT, **collected}, indent=1, ensure_ascii=False)
    KEPT_IN.write_text(text + "\n", encoding="utf-8")


def _refusal(selector: str) -> str:
    """Why a combination is refused; empty where it runs and every check passes."""
    try:
        found = certify(selector, checks=CHECKS)
    except (Refused, InvalidConfig) as error:
        reason = str(error)
    else:
        reason = found.failed.get("runs_somewhere", "")
        assert reason or found.green(), as_text([found])
    assert "Error:" not in reason, reason
    return reason


@pytest.mark.slow
@pytest.mark.parametrize("selector", CHOSEN)
def test_a_combination_is_certified_or_refused_with_its_sentence(selector, expected, request):
    reason = _refusal(selector)
    if request.config.getoption("--update-golden", default=False):
        expected[selector] = reason
    assert reason == expected[selector]


@pytest.mark.slow
@pytest.mark.parametrize("selector", _draws_of_new_components())
def test_a_new_component_combines_or_is_refused_with_a_sentence(selector):
    reason = _refusal(selector)
    assert not reason or len(reason.split()) > 3


def test_at_least_half_of_the_draws_run():
    refused = [reason for reason in KEPT.values() if reason]
    assert len(refused) <= len(KEPT) / 2
    assert all(len(reason.split()) > 3 for reason in refused)


def test_every_draw_that_is_kept_names_what_is_registered():
    for selector in KEPT:
        try:
            resolve(selector)
        except (Refused, InvalidConfig):
            continue  # refused for its options; an unknown name would be an `UnknownName`
