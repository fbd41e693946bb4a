import pytest
import torch

import variants
from bench.api.errors import Refused


@pytest.mark.parametrize("heads", [None, 2])
def test_vectorized_code_equals_the_loops(equals_oracle, heads):
    equals_oracle("new_name", heads=heads)


def test_the_second_query_sees_the_weights_of_the_first(component, ask, draw):
    drawn = draw(1, 1, 1, 3, lengths=())
    history = component("history", "new_name", heads=1)
    call = ask(drawn.query, drawn.source)
    weights = torch.tensor([0.5, 0.25, 0.25]).view(1, 1, 1, 3)
    features = history.features(call, history.update(call, weights, {}))
    assert features.flatten().tolist() == [0.5, 0.25, 0.25]


def test_attention_without_steps_is_refused():
    with pytest.raises(Refused, match="pooling asks once"):
        variants.build("new_name", dim=8, heads=2, regime="pool")
