"""What the recipes of this family need of the place they stand in, said in sentences."""

import pytest

from bench.api import registry
from bench.api.errors import BenchError
from bench.api.resolve import resolve

CROSS = frozenset({"cross", "padding", "stepwise"})
HOMES = {
    "hard_reinforce": "transduction[rule=copy]",
    "hard_gumbel_st": "transduction[rule=copy]",
    "raffel_monotonic": "transduction[rule=copy]",
    "hard_exact": "transduction[rule=copy]",
    "mocha": "transduction[rule=copy]",
    "milk": "transduction[rule=copy]",
    "mma": "transduction[rule=copy]",
    "mma_h": "transduction[rule=copy]",
    "rationale": "after_marker",
    "pointer_generator": "oov_copy",
    "supervised_attention": "transduction[rule=swap]",
    "agreement_trace": "transduction[rule=swap]",
}


@pytest.mark.parametrize(("name", "default_task"), HOMES.items())
def test_recipes_are_listed_with_their_default_task_and_paper(name, default_task):
    registered = registry.find("recipe", name)
    assert registered.default_task.task == default_task
    assert registered.citation.url.startswith("https://arxiv.org/abs/")
    assert registered.title


@pytest.mark.parametrize(
    ("name", "capabilities", "sentence"),
    [
        ("hard_exact", {"simplex"}, "hard_exact needs decoder states that do not depend on"),
        ("hard_exact", {"open_loop", "two_sources"}, "hard_exact: hard_exact sums over the keys"),
        ("pointer_generator", set(), "pointer_generator needs the token ids of the source"),
        ("supervised_attention", set(), "supervised needs gold alignments"),
        ("hard_reinforce[loss=none]", set(), "hard_reinforce needs the reinforce loss"),
        (
            "raffel_monotonic[output=pointer_generator]",
            {"source_tokens"},
            "weights that sum to one",
        ),
        ("raffel_monotonic[output=hard_exact]", {"open_loop"}, "weights that sum to one"),
    ],
)
def test_a_place_that_lacks_something_is_refused_in_a_sentence(name, capabilities, sentence):
    reason = resolve(name).refusal(CROSS | capabilities)
    assert reason is not None
    assert sentence in reason
    assert reason.endswith(".")


@pytest.mark.parametrize(
    ("name", "capabilities"),
    [
        ("hard_reinforce", set()),
        ("hard_gumbel_st", set()),
        ("raffel_monotonic", set()),
        ("hard_exact", {"open_loop"}),
        ("pointer_generator", {"source_tokens"}),
        ("supervised_attention", {"gold_alignment"}),
        ("hard_gumbel_st[output=hard_exact]", {"open_loop"}),
    ],
)
def test_a_place_that_has_everything_is_accepted(name, capabilities):
    assert resolve(name).refusal(CROSS | capabilities) is None


@pytest.mark.parametrize(
    ("name", "axis", "option"),
    [
        ("hard_reinforce[sampling=0.7]", "normalizer", "sampling"),
        ("hard_gumbel_st[tau_end=0.2]", "normalizer", "tau_end"),
        ("raffel_monotonic[offset=-4]", "normalizer", "offset"),
        ("mocha[window=4]", "normalizer", "window"),
        ("milk[end=nothing]", "normalizer", "end"),
        ("rationale[coherence=0.1]", "loss", "coherence"),
        ("supervised_attention[distance=mse]", "loss", "distance"),
    ],
)
def test_bare_options_go_to_what_the_name_is_about(name, axis, option):
    assert option in resolve(name).axes[axis][0].options
    default, changed = resolve(name.partition("[")[0]), resolve(name)
    assert default.axes[axis][0].options[option] != changed.axes[axis][0].options[option]


def test_hard_reinforce_cannot_stand_within_the_source():
    reason = resolve("hard_reinforce").refusal(frozenset({"self", "padding"}))
    assert reason is not None
    assert "reinforce: a reward belongs to a target" in reason


def test_agreement_trace_fixes_the_direction():
    assert registry.find("recipe", "agreement_trace").target.fixes == {
        "direction": "both[joint=agreement_trace]"
    }
    pytest.importorskip("tasks.backbones.directions")
    fixed = resolve("agreement_trace").fixes["direction"]
    assert str(fixed).startswith("both[joint=agreement_trace[gamma=")


@pytest.mark.parametrize(
    "wrong",
    [
        "hard_gumbel_st[tau_start=0]",
        "raffel_monotonic[computation=magic]",
        "hard_reinforce[loss=reinforce[baseline=magic]]",
    ],
)
def test_wrong_options_are_named(wrong):
    with pytest.raises(BenchError, match=r"above 0|computation|baseline"):
        resolve(wrong)
