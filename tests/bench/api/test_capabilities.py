"""Refusals are computed from capabilities, in a fixed order and in words."""

from typing import get_args

import pytest

from bench.api.capabilities import CAPABILITIES, Capability, check_capabilities, refusal
from bench.api.has_capabilities import HasCapabilities


def part(needs=(), gives=(), removes=(), unsupported=None):
    capabilities = {
        "needs": frozenset(needs),
        "gives": frozenset(gives),
        "removes": frozenset(removes),
    }
    return type("Part", (), {**capabilities, "unsupported": unsupported or {}})


def test_nothing_is_refused_where_needs_are_met_by_the_place_or_by_another_part():
    parts = [("a", part(needs={"weights", "cross"})), ("b", part(gives={"weights"}))]
    assert refusal(parts, frozenset({"cross"})) is None
    assert refusal([], frozenset()) is None


def test_a_missing_fact_is_named_in_words():
    reason = refusal([("a", part(needs={"gold_alignment"}))], frozenset())
    assert reason == "a needs gold alignments, which nothing here gives."


def test_what_a_part_cannot_meet_comes_before_what_another_needs():
    parts = [
        ("a", part(needs={"weights"})),
        ("b", part(unsupported={"causal": "there is no future to hide"})),
    ]
    assert refusal(parts, frozenset({"causal"})) == "b: there is no future to hide"


def test_the_first_part_and_then_the_first_fact_in_the_alphabet_is_named():
    wants = part(needs={"weights", "cross", "stream"})
    assert "cross attention" in refusal([("a", wants), ("b", wants)], frozenset())
    unsupported = part(unsupported={"pool": "second", "causal": "first"})
    assert refusal([("a", unsupported)], frozenset({"pool", "causal"})) == "a: first"


def test_a_fact_that_one_part_takes_away_is_not_there_whoever_gives_it():
    parts = [
        ("softmax", part(gives={"simplex"})),
        ("window", part(removes={"simplex"})),
        ("copy", part(needs={"simplex"})),
    ]
    assert refusal(parts, frozenset({"simplex"})) == (
        "copy needs weights that sum to one, which window removes."
    )


def test_what_is_taken_away_cannot_be_refused_either():
    parts = [("a", part(unsupported={"simplex": "never"})), ("b", part(removes={"simplex"}))]
    assert refusal(parts, frozenset({"simplex"})) is None


def test_an_unknown_fact_is_found_at_import():
    with pytest.raises(AssertionError, match="mine: unknown capability 'wings'"):
        check_capabilities("mine", {"cross"}, {"wings"})


def test_padding_is_in_every_batch_so_that_nothing_can_do_without_it():
    with pytest.raises(AssertionError, match="batches are padded everywhere"):
        type("Alone", (HasCapabilities,), {"unsupported": {"padding": "takes no mask"}})


def test_every_fact_has_words_that_read_in_a_sentence():
    for capability, words in CAPABILITIES.items():
        assert words, capability
        assert words[0].islower()
        assert not words.endswith(".")


def test_every_capability_of_the_closed_set_has_its_words():
    assert [*CAPABILITIES] == [*get_args(Capability)]
