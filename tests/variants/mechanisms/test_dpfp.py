import torch


def test_features_by_hand(beneath):
    variant = beneath("dpfp[shifts=2]", widths=(2, 2, 2))
    x = torch.tensor([3.0, -2.0], dtype=torch.float64).view(1, 1, 1, 2)
    # r = [3, 0, 0, 2]; turned by one it is [2, 3, 0, 0], by two [0, 2, 3, 0]
    expected = torch.tensor([6.0, 0, 0, 0, 0, 0, 0, 0], dtype=torch.float64)
    torch.testing.assert_close(variant.of_keys(x, torch.arange(1)).flatten(), expected)


def test_a_vector_and_its_negative_share_no_feature(beneath, draw):
    variant = beneath("dpfp")
    x = draw().query
    one, two = (variant.of_keys(sign * x, torch.arange(4)) for sign in (1, -1))
    assert (one * two).abs().max() == 0


def test_there_are_twice_as_many_features_as_units_for_each_shift(beneath, draw):
    found = beneath("dpfp[shifts=3]").of_keys(draw().query, torch.arange(4))
    assert found.shape[-1] == 2 * 3 * 5
