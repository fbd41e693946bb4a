import torch

from bench.api import registry


def test_the_output_is_the_mean_of_the_real_values(equals_oracle):
    found = equals_oracle("uniform")
    for row, length in enumerate(found.lengths):
        mean = found.source.value[row, :, None, :length].mean(2).expand(-1, 5, -1)
        torch.testing.assert_close(found.parallel.output[row], mean, rtol=0, atol=1e-12)


def test_under_causality_it_is_the_mean_of_what_came_before(equals_oracle):
    found = equals_oracle("uniform", "causal")
    sums = found.source.value[0].cumsum(1)
    mean = sums / torch.arange(1, 8)[:, None]
    torch.testing.assert_close(found.parallel.output[0], mean, rtol=0, atol=1e-12)


def test_it_is_a_control():
    assert registry.find("score", "uniform").control
