import pytest
import torch

import variants
from bench.api.cell import Cell
from bench.api.config import build_config
from bench.api.errors import InvalidConfig, Refused
from bench.api.selector import parse
from bench.api.source import Source
from bench.api.trace import Mode
from bench.training.assemble import assemble
from variants.mechanisms.memn2n import MemN2NConfig

SQUARE = (5, 5, 5)
TYINGS = ("adjacent", "layer_wise")


def reading(variant, drawn, progress=1.0, query=None):
    memory = variant.prepare(drawn.source)
    asked = drawn.query if query is None else query
    return variant.attend(asked, memory, variant.start(memory, None), progress=progress)


@pytest.mark.parametrize("tying", TYINGS)
def test_one_hop_is_one_soft_attention(tying, beneath, answer, draw):
    drawn = draw(widths=SQUARE)
    one = answer(beneath(f"memn2n[hops=1,tying={tying}]", widths=SQUARE), *drawn[:2])
    dot = answer(beneath("dot", widths=SQUARE), *drawn[:2])
    torch.testing.assert_close(one.output, dot.output, rtol=0, atol=1e-12)
    torch.testing.assert_close(one.weights, dot.weights, rtol=0, atol=1e-12)


def test_adjacent_hops_ask_with_what_was_read_and_reuse_values_as_keys(beneath, draw):
    drawn = draw(2, 2, 3, 6, widths=SQUARE, lengths=())
    variant = beneath("memn2n[hops=3]", widths=SQUARE)
    matrices = list(variant.later)
    assert len(matrices) == 2
    values = [drawn.source.value, *(drawn.source.value @ m for m in matrices)]
    keys = [drawn.source.key, *values[:-1]]
    u = drawn.query
    for key, value in zip(keys, values, strict=True):
        weights = torch.softmax(u @ key.mT, -1)
        u = u + weights @ value
    found = reading(variant, drawn)
    torch.testing.assert_close(drawn.query + found.output, u, rtol=0, atol=1e-10)
    torch.testing.assert_close(found.weights, weights, rtol=0, atol=1e-10)


def test_layer_wise_hops_share_keys_and_values_and_carry_the_query_by_h(beneath, draw):
    drawn = draw(2, 2, 3, 6, widths=SQUARE, lengths=())
    variant = beneath("memn2n[hops=3,tying=layer_wise]", widths=SQUARE)
    assert [name for name, _ in variant.named_parameters()] == ["carry"]
    u, kept = drawn.query, drawn.query
    for _ in range(3):
        read = torch.softmax(u @ drawn.source.key.mT, -1) @ drawn.source.value
        u, kept = u @ variant.carry + read, kept @ variant.carry
    found = reading(variant, drawn).output
    torch.testing.assert_close(kept + found, u, rtol=0, atol=1e-10)


def test_a_later_hop_follows_a_chain_that_one_hop_cannot(beneath):
    """The query finds the first key, whose value is the second key, whose value is the answer."""
    eye = 30 * torch.eye(3, dtype=torch.float64)
    key = torch.stack((eye[0], eye[1]))[None, None]
    value = torch.stack((eye[1], eye[2]))[None, None]
    outputs = {}
    for hops in (1, 2):
        variant = beneath(
            f"memn2n[hops={hops},tying=layer_wise]", heads=1, widths=(3, 3, 3), seed=None
        )
        with torch.no_grad():
            variant.carry.zero_()  # the query is replaced by what was read
        memory = variant.prepare(Source(key, value))
        found = variant.attend(eye[:1][None, None], memory, variant.start(memory, None))
        outputs[hops] = found.output[0, 0, 0]
    assert outputs[1].argmax() == 1
    assert outputs[2].argmax() == 2


@pytest.mark.parametrize("tying", TYINGS)
def test_the_order_of_memories_does_not_matter(tying, beneath, draw):
    drawn = draw(2, 2, 3, 6, widths=SQUARE, lengths=())
    variant = beneath(f"memn2n[tying={tying}]", widths=SQUARE)
    order = torch.tensor([4, 2, 0, 5, 1, 3])
    turned = Source(drawn.source.key[:, :, order], drawn.source.value[:, :, order])
    one, two = reading(variant, drawn), reading(variant, drawn._replace(source=turned))
    torch.testing.assert_close(one.output, two.output, rtol=0, atol=1e-12)
    torch.testing.assert_close(one.weights[..., order], two.weights, rtol=0, atol=1e-12)


@pytest.mark.parametrize("tying", TYINGS)
def test_without_its_softmax_it_is_linear_in_the_query_and_with_it_it_is_not(tying, beneath, draw):
    drawn = draw(2, 2, 3, 6, widths=SQUARE)
    variant = beneath(f"memn2n[tying={tying},linear_start=0.4]", widths=SQUARE)
    other = drawn.query.flip(0)
    for progress, linear in ((0.0, True), (0.39, True), (0.4, False), (1.0, False)):
        parts = [reading(variant, drawn, progress, q).output for q in (drawn.query, other)]
        joint = reading(variant, drawn, progress, 2 * drawn.query - 3 * other).output
        expected = 2 * parts[0] - 3 * parts[1]
        assert torch.allclose(joint, expected, rtol=1e-9, atol=1e-9) == linear, progress


def test_a_linear_hop_reads_by_the_products_themselves_and_nothing_of_padding(beneath, draw):
    drawn = draw(widths=SQUARE)
    variant = beneath("memn2n[hops=1,linear_start=0.5]", widths=SQUARE)
    products = drawn.query @ drawn.source.key.mT
    products = torch.where(drawn.source.mask[:, None, None, :], products, 0.0)
    found = reading(variant, drawn, 0.1).output
    torch.testing.assert_close(found, products @ drawn.source.value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("tying", TYINGS)
def test_products_without_a_softmax_are_not_handed_on_as_weights(tying, beneath, draw):
    drawn = draw(widths=SQUARE)
    variant = beneath(f"memn2n[tying={tying},linear_start=0.4]", widths=SQUARE)
    assert reading(variant, drawn, 0.39).weights is None
    weights = reading(variant, drawn, 0.4).weights
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


@pytest.mark.parametrize(
    "beside", ["output=lexicon_bias", "loss=supervised", "loss=coverage_loss", "loss=quantity"]
)
def test_what_reads_weights_is_refused_beside_a_linear_start(beside):
    """In a network; it was trained on products that may be negative, some of which gave NaN."""
    for start, refused in ((0.0, False), (0.3, True)):
        cell = Cell(
            kind="quality",
            variant=f"memn2n[linear_start={start},{beside}]",
            task="transduction[rule=dict]",
            backbone="transformer_seq2seq[width=16,layers=1,heads=2]",
            slot="cross",
            protocol="adam",
        )
        built = assemble(cell, None)
        batch = next(iter(built.task.training(4, torch.Generator().manual_seed(0))))
        system = built.system
        mode, carry = Mode(read="train", progress=0.1), system.init_carry()
        if refused:
            with pytest.raises(Refused, match="needs weights, and the variant has none"):
                system.losses(batch, mode, carry)
        else:
            terms, _ = system.losses(batch, mode, carry)
            assert all(term.isfinite() for term in terms.values())


def test_evaluation_always_has_the_softmax(beneath, answer, draw):
    drawn = draw(widths=SQUARE)
    outputs = [
        answer(beneath(f"memn2n[linear_start={share}]", widths=SQUARE), *drawn[:2]).output
        for share in (0.0, 0.5)
    ]
    assert torch.equal(*outputs)


@pytest.mark.parametrize(
    ("options", "reason"), [("hops=0", "at least 1"), ("linear_start=1.5", "share of training")]
)
def test_options_without_a_meaning_are_refused(options, reason):
    asked = parse(f"memn2n[{options}]")
    with pytest.raises(InvalidConfig, match=reason):
        build_config(MemN2NConfig, asked.options, asked.name)


def test_places_without_a_meaning_are_refused(beneath):
    with pytest.raises(Refused, match="values must be as wide as queries"):
        beneath("memn2n", widths=(5, 5, 4))
    with pytest.raises(Refused, match="equal width"):
        variants.build("memn2n", dim=8, source_dim=6, regime="cross")
    with pytest.raises(Refused, match="impl=sdpa"):
        variants.build("memn2n", dim=8, heads=2, impl="sdpa")


def test_an_edit_of_the_weights_is_what_the_values_are_mixed_by(beneath, draw):
    drawn = draw(widths=SQUARE, lengths=())
    variant = beneath("memn2n", widths=SQUARE)
    memory = variant.prepare(drawn.source)

    def first_key(weights, call):
        return torch.zeros_like(weights).index_fill(3, torch.tensor([0]), 1.0)

    state = variant.start(memory, None)
    found = variant.attend(drawn.query, memory, state, edit=first_key)
    only = variant.prepare(Source(drawn.source.key[:, :, :1], drawn.source.value[:, :, :1]))
    alone = variant.attend(drawn.query, only, state).output
    torch.testing.assert_close(found.output, alone, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.weights, first_key(found.weights, None), rtol=0, atol=1e-12)
