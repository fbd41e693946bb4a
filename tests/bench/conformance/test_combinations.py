"""The axes really combine: random draws over all of them are certified or refused with a sentence.

`BENCH_COMBINATIONS=300` runs all draws; without it a fresh machine runs the first 40.
`BENCH_COMBINATIONS=300 pytest tests/bench/conformance/test_combinations.py --update-golden` writes
the list of expected refusals again, which is then read by hand.
"""

import json
import os
import random
from pathlib import Path

import pytest

import variants
from bench.api import registry
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import ABSENT, CHAIN_AXES, DEFAULTS, STACKED
from bench.conformance import as_text, certify

ALL = 300
IN_CI = 40
SEED = 0
REFUSALS = Path(__file__).parent / "refused_combinations.json"
"""Selector -> sentence, for every draw that is refused; reviewed by hand."""
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


def _draws() -> list[str]:
    variants.load_all()
    rng = random.Random(SEED)
    found: dict[str, None] = {}
    while len(found) < ALL:
        found.setdefault(_draw(rng))
    return list(found)


def _draw(rng: random.Random) -> str:
    """A chain with a score of its own and one or two further choices."""
    scores = registry.registrations("score")
    # a control says nothing about keys, so neither do the checks that ask which one is best
    score = rng.choice([name for name in sorted(scores) if not scores[name].control])
    options = {}
    others = [axis for axis in CHAIN_AXES if axis != "score"]
    for axis in rng.sample(others, rng.randint(1, 2)):
        known = sorted(set(registry.registrations(axis)) - {DEFAULTS[axis], ABSENT.get(axis)})
        count = 2 if axis in STACKED and rng.random() < 0.25 else 1
        options[axis] = "+".join(rng.sample(known, min(count, len(known))))
    if rng.random() < 0.25:
        options["head"] = "multi[heads=2]"
    if options.get("normalizer") == "hard_reinforce":
        options["loss"] = "reinforce"  # which is its gradient
    written = ",".join(f"{axis}={value}" for axis, value in sorted(options.items()))
    return f"{score}[{written}]"


DRAWS = _draws()
CHOSEN = DRAWS[: int(os.environ.get("BENCH_COMBINATIONS", IN_CI))]


@pytest.fixture(scope="module")
def refused(request):
    """Expected refusals; `--update-golden` collects them anew and writes them at the end."""
    if not request.config.getoption("--update-golden", default=False):
        yield json.loads(REFUSALS.read_text(encoding="utf-8"))
        return
    collected: dict[str, str] = {}
    yield collected
    text = json.dumps(dict(sorted(collected.items())), indent=1, ensure_ascii=False)
    REFUSALS.write_text(text + "\n", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("selector", CHOSEN)
def test_a_combination_is_certified_or_refused_with_a_sentence(selector, refused, request):
    try:
        found = certify(selector, checks=CHECKS)
    except (Refused, InvalidConfig) as error:
        reason = str(error)
    else:
        reason = found.failed.get("runs_somewhere", "")
        assert reason or found.green(), as_text([found])
    assert "Error:" not in reason, reason
    if request.config.getoption("--update-golden", default=False):
        refused.update({selector: reason} if reason else {})
    assert reason == refused.get(selector, "")


def test_at_least_half_of_the_draws_run():
    expected = json.loads(REFUSALS.read_text(encoding="utf-8"))
    assert set(expected) <= set(DRAWS)
    assert len(expected) <= ALL / 2
    assert all(len(reason.split()) > 3 for reason in expected.values())


def test_draws_reach_every_component_of_the_chain():
    text = " ".join(DRAWS)
    for axis in CHAIN_AXES:
        known = registry.registrations(axis)
        for name in set(known) - {DEFAULTS[axis], ABSENT.get(axis)}:
            assert name in text or known[name].control, name
