import torch


def test_features_start_as_a_softmax_of_the_vector_and_its_negative(beneath, draw):
    variant = beneath("hedgehog", seed=None)
    x = draw().query
    expected = torch.cat((x, -x), -1).softmax(-1)
    torch.testing.assert_close(variant.of_keys(x, torch.arange(4)), expected)
    torch.testing.assert_close(variant.of_queries(x, torch.arange(4)), expected)


def test_features_sum_to_one(beneath, draw):
    found = beneath("hedgehog").of_keys(draw().query, torch.arange(4)).sum(-1)
    torch.testing.assert_close(found, torch.ones_like(found))


def test_queries_and_keys_have_maps_of_their_own(beneath, draw):
    variant = beneath("hedgehog")
    x = draw().query
    one, two = variant.of_keys(x, torch.arange(4)), variant.of_queries(x, torch.arange(4))
    assert not torch.allclose(one, two)
