"""Vectors of labeled edges."""

import pytest
import torch

import variants
from bench.api.errors import Refused
from bench.api.resolve import resolve
from bench.api.source import Source
from bench.conformance.place import PLACEMENTS, build_subject


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("use", ["both", "keys", "values"])
@pytest.mark.parametrize("tables", ["per_head", "shared"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime, use, tables):
    equals_oracle(f"relation_aware[use={use},tables={tables}]", regime)


def test_other_scores_equal_the_loops(equals_oracle):
    equals_oracle("scaled_dot[position=relation_aware,score=additive[width=3]]", "self")


@pytest.mark.parametrize("regime", ["causal", "self"])
@pytest.mark.parametrize("tables", ["per_head", "shared"])
def test_clipped_distances_as_labels_are_shaws_relative_positions(
    beneath, answer, draw, regime, tables
):
    drawn = draw(2, 2, 7, 7)
    one = beneath(f"shaw_rpr[clip=2,tables={tables}]", regime=regime)
    two = beneath(f"relation_aware[tables={tables}]", regime=regime)
    two.load_state_dict(one.state_dict())
    place = torch.arange(7)
    labels = (place - place[:, None]).clamp(-2, 2) + 2
    told = {"relation": labels.expand(2, 7, 7)}
    shaw = answer(one, drawn.query, drawn.source)
    mine = answer(two, drawn.query, drawn.source, extras=told)
    torch.testing.assert_close(mine.weights, shaw.weights, rtol=0, atol=1e-12)
    torch.testing.assert_close(mine.output, shaw.output, rtol=0, atol=1e-12)


def test_golden_weights_and_outputs_are_those_of_shaws_distances(beneath, answer):
    variant = beneath("relation_aware", heads=1, widths=(1, 1, 1), regime="self")
    with torch.no_grad():
        for table, numbers in (
            (variant.positions[0].key_table, [-1.0, 0.0, 1.0, 9.0, 9.0]),
            (variant.positions[0].value_table, [10.0, 0.0, 20.0, 9.0, 9.0]),
        ):
            table.copy_(torch.tensor(numbers).view_as(table))
    ones = torch.ones(1, 1, 3, 1, dtype=torch.float64)
    labels = torch.tensor([[[1, 2, 2], [0, 1, 2], [0, 0, 1]]])
    found = answer(variant, ones, Source(ones, ones), extras={"relation": labels})
    first = pytest.approx([0.155362, 0.422319, 0.422319], abs=1e-6)
    assert found.weights[0, 0, 0].tolist() == first
    outputs = [17.892752, 15.205125, 5.238831]
    assert found.output.flatten().tolist() == pytest.approx(outputs, abs=1e-6)


def test_one_label_for_all_pairs_leaves_the_weights_as_they_are(beneath, answer, draw):
    drawn = draw(2, 2, 5, 5)
    told = {"relation": torch.full((2, 5, 5), 3)}
    mine = answer(beneath("relation_aware", regime="self"), drawn.query, drawn.source, extras=told)
    plain = answer(beneath("scaled_dot", regime="self"), drawn.query, drawn.source)
    torch.testing.assert_close(mine.weights, plain.weights, rtol=0, atol=1e-12)


def test_a_label_changes_the_weights_of_its_own_pair_and_direction_alone(beneath, answer, draw):
    drawn = draw(1, 1, 4, 4, lengths=())
    variant = beneath("relation_aware", heads=1, regime="self")
    labels = torch.zeros(1, 4, 4, dtype=torch.int64)
    linked = labels.clone()
    linked[0, 1, 3] = 2
    one, two = (
        answer(variant, drawn.query, drawn.source, extras={"relation": told}).output
        for told in (labels, linked)
    )
    changed = (one != two).any(-1)[0, 0].tolist()
    assert changed == [False, True, False, False]


def test_labels_of_tokens_that_have_not_come_yet_are_not_looked_at(beneath, answer, draw):
    drawn = draw(1, 1, 4, 4, lengths=())
    variant = beneath("relation_aware", heads=1, regime="causal")
    labels = torch.randint(5, (1, 4, 4), generator=torch.Generator().manual_seed(0))
    later = torch.ones(4, 4, dtype=torch.bool).triu(1)
    outputs = [
        answer(variant, drawn.query, drawn.source, extras={"relation": told}).output
        for told in (labels, torch.where(later, (labels + 1) % 5, labels))
    ]
    assert torch.equal(*outputs)


def test_a_backbone_that_hands_no_labels_on_is_refused():
    with pytest.raises(Refused, match="relation_aware needs labels between tokens"):
        variants.build("relation_aware", dim=8, heads=2, regime="self")
    with pytest.raises(Refused, match="labels are of pairs within one sequence"):
        variants.build("relation_aware", dim=8, heads=2, regime="cross", relations=3)


def test_only_who_needs_labels_is_told_of_them_in_certificates():
    causal = next(p for p in PLACEMENTS if p.regime == "causal")
    told = {
        name: build_subject(resolve(name), causal).told_relations
        for name in ("relation_aware", "shaw_rpr", "linear_attention")
    }
    assert told == {"relation_aware": True, "shaw_rpr": False, "linear_attention": False}
