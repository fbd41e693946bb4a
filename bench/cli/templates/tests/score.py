import pytest

from bench.api.config import build_config
from bench.api.errors import InvalidConfig
from bench.api.registry import find


@pytest.mark.parametrize("regime", ["cross", "causal", "self", "pool"])
def test_vectorized_code_equals_the_loops(equals_oracle, regime):
    equals_oracle("new_name[scale=0.3]", regime)


def test_golden_energies(component, ask, golden):
    # the query is (1, 0) and the keys are (1, 0), (0, 1) and (1, 1)
    score = component("score", "new_name[scale=2.0]", heads=1, widths=(2, 2, 2))
    energy = score.energy(ask(golden.query, golden.source), None)
    assert energy.flatten().tolist() == pytest.approx([2**0.5, 0.0, 2**0.5])


def test_a_scale_that_is_not_positive_is_refused():
    with pytest.raises(InvalidConfig, match="scale must be positive"):
        build_config(find("score", "new_name").config, {"scale": 0.0}, "new_name")
