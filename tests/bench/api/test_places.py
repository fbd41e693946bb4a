"""What places offer: one answer for the planner, the timer and the certificate."""

import pytest

from bench.api import registry
from bench.api.call import REGIMES
from bench.api.capabilities import CAPABILITIES
from bench.api.places import ANYWHERE, UNKNOWN_UNTIL_BUILT, timed_place, trained_place
from bench.api.resolve import canonical_backbone, resolve
from bench.running.speed_cells import speed_regimes
from bench.timing import workloads
from bench.timing.shape import AttendShape


@pytest.mark.parametrize("regime", REGIMES)
def test_no_timed_place_offers_what_no_place_could(regime):
    assert timed_place(regime) <= ANYWHERE | UNKNOWN_UNTIL_BUILT | {regime}
    assert timed_place(regime) <= CAPABILITIES.keys()


def test_an_output_that_refuses_a_reward_may_stand_where_outputs_are_not_run():
    assert resolve("ssnt").refusal(timed_place("cross")) is None


def test_most_variants_are_planned_to_be_timed():
    timed = [name for name in registry.listed_variants() if speed_regimes(resolve(name))]
    assert len(timed) >= 170


@pytest.mark.parametrize("name", registry.listed_variants())
def test_what_is_planned_to_be_timed_can_be_built_at_the_timed_place(name):
    spec = resolve(name)
    for regime in speed_regimes(spec):
        assert workloads.build(spec, AttendShape(regime=regime), "auto", seed=0) is not None


def test_a_backbone_takes_away_what_its_encoder_removes():
    task = registry.find("task", "transduction").target
    plain = canonical_backbone("rnn_seq2seq", {})
    folded = canonical_backbone("rnn_seq2seq[encoder=pyramid]", {})
    assert {"source_tokens", "source_states"} <= trained_place(task, plain)
    assert not trained_place(task, folded) & {"source_tokens", "source_states"}
