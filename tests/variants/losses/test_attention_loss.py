"""Losses as callables of a training loop of one's own, and what they must be handed over."""

import pytest
import torch

import variants
from bench.api.errors import Refused

ROWS, STEPS, KEYS, WIDTH = 2, 3, 5, 8


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


MASK = torch.ones(ROWS, STEPS, dtype=torch.bool)
NLL, STATES = drawn(ROWS, STEPS, seed=2).abs(), drawn(ROWS, STEPS, WIDTH, seed=3)


@pytest.fixture
def answered():
    """`answered(selector, regime, **call)` -> what attention answered, and its memory."""

    def ask(selector="scaled_dot", regime="cross", **call):
        source_dim = WIDTH if regime == "cross" else None
        made = variants.build(
            selector, dim=WIDTH, source_dim=source_dim, regime=regime, attention_only=True
        ).train()
        x = drawn(ROWS, STEPS, WIDTH)
        if regime == "causal":
            return made.answer_all(x, x, **call)[1], None
        source = drawn(ROWS, KEYS, WIDTH, seed=1)
        return made.answer_all(x, source, **call)[1], made.prepare(source)

    return ask


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        ("indexer_kl", "needs attention with an indexer; use dsa or csa"),
        ("span_penalty", "needs attention that learns its span; use adaptive_span"),
        ("mi_coverage_norm", "needs coverage embeddings; use history=mi_coverage"),
        ("ponder", "needs a mechanism that counts its hops; use act"),
        ("latency", "needs a monotonic normalizer; use milk, mocha or mma"),
    ],
)
def test_a_loss_that_finds_no_term_in_the_answer_says_whose_answer_has_it(loss, sentence, answered):
    with pytest.raises(Refused, match=sentence):
        variants.build_loss(loss)(*answered(), mask=MASK)


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        ("supervised", "needs gold alignments; hand over `gold`, a row for each target"),
        ("reinforce", "hand over `nll`, the negative log likelihood of each target"),
        ("reinforce[baseline=none]", "hand over `nll`"),
        ("quantity[end=false]", "hand over `targets`, their ids, with 2 for the end"),
    ],
)
def test_what_was_not_handed_over_is_named(loss, sentence, answered):
    with pytest.raises(Refused, match=sentence):
        variants.build_loss(loss)(*answered("hard_reinforce"), mask=MASK)


def test_without_targets_every_word_counts_and_with_them_ends_are_left_out(answered):
    attended, memory = answered()
    assert variants.build_loss("quantity")(attended, memory, mask=MASK).item() == 0
    words = torch.tensor([[7, 8, 2], [7, 2, 0]])
    mask = words > 0
    half = attended._replace(weights=attended.weights / 2)
    loss = variants.build_loss("quantity[end=false]")
    found = loss(half, memory, mask=mask, targets=words)
    # half of three words that are none of the two ends, over five targets
    torch.testing.assert_close(found, torch.tensor(1.5 / 5))


OVER_A_SOURCE = (
    "coverage_eq1",
    "coverage_loss[start=0]",
    "doubly_stochastic",
    "fertility_hinge",
    "global_fertility",
    "quantity",
)


@pytest.mark.parametrize("loss", OVER_A_SOURCE)
def test_a_loss_over_a_source_is_refused_under_causal_attention(loss, answered):
    attended, _ = answered(regime="causal")
    made = variants.build_loss(loss, source_dim=WIDTH)
    with pytest.raises(Refused, match=r"causal self-attention has none; .* `prepare` returned"):
        made(attended, None, mask=MASK)
    assert made(*answered(), mask=MASK).isfinite()


def test_delays_want_the_source_that_they_are_compared_with(answered):
    attended, memory = answered("milk")
    loss = variants.build_loss("latency")
    with pytest.raises(Refused, match="hand over as `memory` what `prepare` returned"):
        loss(attended, None, mask=MASK)
    assert loss(attended, memory, mask=MASK).isfinite()


def test_supervision_needs_no_memory(answered):
    gold = torch.zeros(ROWS, STEPS, STEPS)
    gold[..., 0] = 1
    attended, _ = answered(regime="causal")
    assert variants.build_loss("supervised")(attended, None, mask=MASK, gold=gold) > 0


@pytest.mark.parametrize("call", [{"want_weights": False}, {"progress": 0.1}])
def test_an_answer_without_weights_is_refused_where_they_are_read(call, answered):
    selector = "memn2n[linear_start=0.5]"
    loss = variants.build_loss("coverage_loss[start=0]")
    with pytest.raises(Refused, match=r"`attended` has none; .* under want_weights=True"):
        loss(*answered(selector, **call), mask=MASK)
    assert loss(*answered(selector), mask=MASK).isfinite()


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        ("rationale", "reads what an encoder says of its tokens"),
        ("reinforce[baseline=leave_one_out]", "several draws of each example, .* another baseline"),
        ("reinforce[baseline=learned]", "give state_dim, word_dim or both"),
        ("global_fertility", "give source_dim, their width, all heads together"),
    ],
)
def test_what_could_never_be_used_is_refused_where_it_is_built(loss, sentence):
    with pytest.raises(Refused, match=sentence):
        variants.build_loss(loss)


@pytest.mark.parametrize(
    ("widths", "handed", "sentence"),
    [
        ({"state_dim": 8}, {}, "built with state_dim=8, and `states` has 0 numbers"),
        ({"state_dim": 6}, {"states": STATES}, "built with state_dim=6, and `states` has 8"),
        ({"word_dim": 8}, {"states": STATES}, "built with state_dim=0, and `states` has 8"),
        ({"state_dim": 8, "word_dim": 4}, {"states": STATES}, "word_dim=4, and `embedded` has 0"),
    ],
)
def test_a_learned_value_is_refused_other_widths_than_it_was_built_for(
    widths, handed, sentence, answered
):
    loss = variants.build_loss("reinforce[baseline=learned]", **widths)
    with pytest.raises(Refused, match=sentence):
        loss(*answered("hard_reinforce"), mask=MASK, nll=NLL, **handed)


def test_a_learned_value_learns_from_what_it_was_built_for(answered):
    loss = variants.build_loss("reinforce[baseline=learned,entropy=0]", state_dim=8, word_dim=4)
    handed = {"states": STATES, "embedded": drawn(ROWS, STEPS, 4)}
    loss(*answered("hard_reinforce"), mask=MASK, nll=NLL, **handed).backward()
    assert all(parameter.grad.any() for parameter in loss.parameters())


def test_values_of_another_width_are_refused(answered):
    loss = variants.build_loss("global_fertility", source_dim=6)
    with pytest.raises(Refused, match="built with source_dim=6, and `memory` has 8 numbers"):
        loss(*answered(), mask=MASK)
