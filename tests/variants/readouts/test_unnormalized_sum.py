import torch

from bench.api.source import Source


def test_under_a_window_only_visible_keys_count(equals_oracle):
    equals_oracle("unnormalized_sum[mask=luong_local_m[window=1]]")


def test_under_even_weights_it_is_the_sum_of_the_values(read, draw):
    source = draw(1, 2, 1, 6, lengths=()).source
    weights = torch.full((1, 2, 1, 6), 1 / 6, dtype=torch.float64)
    found = read("unnormalized_sum", weights, source)
    torch.testing.assert_close(found, source.value.sum(2, keepdim=True), rtol=0, atol=1e-12)


def test_a_source_twice_as_long_reads_twice_as_much_where_a_weighted_sum_sees_no_difference(
    beneath, answer, draw
):
    drawn = draw(lengths=())
    key, value = (torch.cat((x, x), 2) for x in (drawn.source.key, drawn.source.value))
    for selector, factor in (("unnormalized_sum", 2), ("scaled_dot", 1)):
        variant = beneath(selector)
        once = answer(variant, drawn.query, drawn.source).output
        twice = answer(variant, drawn.query, Source(key, value)).output
        torch.testing.assert_close(twice, factor * once, rtol=0, atol=1e-12)


def test_it_is_the_weighted_sum_times_the_true_number_of_keys(beneath, answer, draw):
    drawn = draw()
    plain, summed = beneath("scaled_dot"), beneath("unnormalized_sum")
    one, two = (answer(v, drawn.query, drawn.source).output for v in (plain, summed))
    number = torch.tensor(drawn.lengths).view(-1, 1, 1, 1)
    torch.testing.assert_close(two, number * one, rtol=0, atol=1e-12)
