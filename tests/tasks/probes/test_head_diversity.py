import pytest
import torch

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.trace import Mode


def measured(seen):
    return {s.metric: s.value for s in make("probe", parse("head_diversity")).measure(seen)}


def test_heads_of_equal_parameters_do_not_differ(subject):
    seen = subject("additive[head=multi[heads=2]]", batches=4)
    assert measured(seen)["head_js_nats"] > 0
    for slot in seen.backbone.variant_slots():
        with torch.no_grad():
            for parameter in slot.variant.parameters():
                parameter[1] = parameter[0]
            for name, parameter in slot.heads.named_parameters():
                if "output" not in name and "merge" not in name:
                    half = parameter.shape[0] // 2
                    parameter[half:] = parameter[:half]
    found = measured(seen)
    assert found["head_js_nats"] == pytest.approx(0.0, abs=1e-12)
    assert found["head_same_key_share"] == 1.0


def test_it_equals_the_formulas(padded):
    seen = padded("additive[head=multi[heads=2]]")
    (batch,) = seen.batches
    assert not batch.mask.all()
    weights = seen.backbone(batch, Mode()).attended[0].weights
    one, two = (w[batch.mask] for w in weights.unbind(1))
    middle = (one + two) / 2
    js = sum(torch.special.xlogy(w, w / middle).nansum(-1) for w in (one, two)) / 2
    same = float((one.argmax(-1) == two.argmax(-1)).double().mean())
    assert 0 < same < 1
    found = measured(seen)
    assert found["head_js_nats"] == pytest.approx(float(js.mean()))
    assert found["head_overlap_share"] == pytest.approx(float((one * two).sum(-1).mean()))
    assert found["head_same_key_share"] == pytest.approx(same)


def test_heads_that_tie_between_keys_do_not_point_at_one_of_them(subject):
    task = "transduction[rule=reverse,min_length=2,max_length=5,vocab=6]"
    seen = subject("uniform[head=multi[heads=2]]", task=task, batches=3)
    found = measured(seen)
    assert found["head_js_nats"] == pytest.approx(0.0, abs=1e-12)
    assert found["head_same_key_share"] == 0.0


def test_one_head_has_nobody_to_differ_from(subject):
    with pytest.raises(Refused, match="one head"):
        measured(subject("additive"))
