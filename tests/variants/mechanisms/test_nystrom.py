import pytest
import torch

import variants
from bench.api.errors import InvalidConfig, Refused
from variants.mechanisms.nystrom import NystromConfig, _pseudo_inverse


def gap_to_softmax(beneath, answer, draw, beside, options):
    drawn = draw(1, 2, 8, 8, lengths=())
    variant = beneath(f"nystrom[{options}]", regime="self")
    with torch.no_grad():
        variant.taps.zero_()
    source = beside(variant, drawn.source, landmark=drawn.query)
    found = answer(variant, drawn.query, source).output
    expected = answer(beneath("scaled_dot", regime="self"), drawn.query, drawn.source).output
    return float((found - expected).detach().abs().max())


def test_with_a_landmark_for_each_token_it_comes_to_softmax_attention(
    beneath, answer, draw, beside
):
    few, many = (
        gap_to_softmax(beneath, answer, draw, beside, f"landmarks=8,iterations={count}")
        for count in (6, 24)
    )
    assert many < 1e-6 < few < 0.5


def test_the_iteration_comes_to_the_pseudo_inverse():
    rng = torch.Generator().manual_seed(0)
    matrix = torch.randn(2, 3, 6, 6, generator=rng, dtype=torch.float64).softmax(-1)
    found = _pseudo_inverse(matrix, 40)
    torch.testing.assert_close(found, torch.linalg.pinv(matrix), rtol=0, atol=1e-6)


def test_segments_differ_by_one_token_at_most(beneath):
    variant = beneath("nystrom[landmarks=3]", regime="self")
    mask = torch.arange(8) < torch.tensor([[8], [7], [2], [0]])
    found = variant._segments(mask)
    sizes = found.sum(1).tolist()
    assert sizes == [[3, 3, 2], [3, 2, 2], [1, 1, 0], [0, 0, 0]]
    assert found[0, :, 0].tolist() == [True] * 3 + [False] * 5


@pytest.mark.parametrize("length", [33, 40, 65])
def test_every_landmark_is_used_where_there_are_tokens_enough(beneath, length):
    variant = beneath("nystrom[landmarks=32]", regime="self")
    mask = torch.arange(70) < torch.tensor([[length], [70]])
    found = variant._segments(mask)
    for row, real in enumerate((length, 70)):
        sizes = found[row].sum(0)
        assert len(sizes) == 32
        assert int(sizes.sum()) == real
        assert 1 <= int(sizes.min()) <= int(sizes.max()) <= int(sizes.min()) + 1
        number = found[row, :real].long().argmax(1)
        assert (number.diff() >= 0).all()


@pytest.mark.parametrize("keys", [33, 40, 65])
def test_lengths_that_do_not_divide_equal_the_loops(equals_oracle, keys):
    equals_oracle("nystrom[landmarks=32]", "self", keys=keys, rows=2)


def test_there_are_no_more_landmarks_than_tokens(beneath):
    variant = beneath("nystrom[landmarks=32]", regime="self")
    mask = torch.arange(9) < torch.tensor([[9], [4]])
    found = variant._segments(mask)
    assert found.shape == (2, 9, 9)
    assert found.sum(1).tolist() == [[1] * 9, [1] * 4 + [0] * 5]


def test_values_go_around_the_landmarks_by_a_convolution(beneath, answer, draw, beside):
    drawn = draw(1, 2, 6, 6, lengths=())
    variant = beneath("nystrom[landmarks=2,kernel=3]", regime="self")
    source = beside(variant, drawn.source)
    found = []
    for taps in (torch.zeros(3), torch.tensor([0.0, 0.0, 1.0])):
        with torch.no_grad():
            variant.taps.copy_(taps)
        found.append(answer(variant, drawn.query, source).output)
    late = torch.cat((drawn.source.value[:, :, 1:], torch.zeros(1, 2, 1, 4)), 2)
    torch.testing.assert_close(found[1] - found[0], late)


@pytest.mark.parametrize(
    ("regime", "reason"), [("causal", "later ones among them"), ("cross", "one sequence")]
)
def test_places_without_one_whole_sequence_are_refused(regime, reason):
    with pytest.raises(Refused, match=reason):
        variants.build("nystrom", dim=8, heads=2, regime=regime)


@pytest.mark.parametrize("options", [{"landmarks": 0}, {"iterations": 0}, {"kernel": 4}])
def test_options_without_meaning_are_refused(options):
    with pytest.raises(InvalidConfig, match="must be at least 1 and the kernel odd"):
        NystromConfig(**options)
