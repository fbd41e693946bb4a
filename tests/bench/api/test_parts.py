"""Calls that are divided: in bounded memory, and only where nothing else is wanted."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import variants
from bench.api import chain
from bench.api.parts import mix_in_parts
from bench.timing.memory import TensorBytes

variants.load_all()
ENERGIES = 2**14


def built(selector, **given):
    torch.manual_seed(0)
    place = {"dim": 16, "heads": 2, "regime": "causal", "attention_only": True, **given}
    made = variants.build(selector, **place)
    made.variant.part_numbers = ENERGIES
    return made


def peak(attention, length):
    x = torch.randn(1, length, 16)
    with torch.no_grad(), TensorBytes() as held:
        attention(x)
    return held.peak


@pytest.mark.parametrize(
    "selector",
    [
        "logit_softcap",
        "stick_breaking",
        "alibi",
        "fox",
        "sigmoid_attention",
        "additive",
        "dsa",
        "differential",
        "talking_heads",
        "hopfield",
        "act",
        "csa",
        "hca",
    ],
)
def test_memory_grows_with_the_length_and_not_with_its_square(selector):
    attention = built(selector)
    once, twice = (peak(attention, length) for length in (512, 1024))
    assert twice < 2.5 * once
    assert twice < 4 * 1024**2, "less than a single matrix of energies"


@pytest.mark.parametrize("selector", ["logit_softcap", "alibi", "nsa", "moba", "dsa", "csa", "act"])
def test_parts_read_what_plain_code_reads(selector):
    x = torch.randn(2, 300, 16, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        parts, plain = (built(selector, impl=impl)(x) for impl in ("auto", "eager"))
    torch.testing.assert_close(parts, plain, rtol=0, atol=2e-6)


@pytest.mark.parametrize(("gradients", "wanted"), [(False, 27), (True, 300)])
def test_calls_are_divided_where_no_gradient_is_wanted(monkeypatch, gradients, wanted):
    sizes = []

    def noted(call, carried, size, answer, **how):
        sizes.append(size)
        return mix_in_parts(call, carried, size, answer, **how)

    monkeypatch.setattr(chain, "mix_in_parts", noted)
    with torch.set_grad_enabled(gradients):
        built("logit_softcap")(torch.randn(1, 300, 16))
    assert sizes == [wanted]


@pytest.mark.parametrize("selector", ["logit_softcap", "stick_breaking", "alibi", "talking_heads"])
def test_a_part_of_a_causal_call_reads_its_past_alone(selector):
    parts, plain = (products(built(selector, impl=impl), 1024) for impl in ("auto", "eager"))
    assert parts < 0.6 * plain


def products(attention, length):
    """Operations of matrix products."""
    with torch.no_grad(), FlopCounterMode(display=False) as counted:
        attention(torch.randn(1, length, 16))
    return counted.get_total_flops()


def test_terms_of_parts_stand_behind_one_another():
    attention = built("dsa")
    x = torch.randn(1, 300, 16)
    with torch.no_grad():
        start = attention.start(None, x)
        found = [
            attention.attend(x, None, start, own=(x, None, None), want_weights=weights)[1].terms
            for weights in (False, True)
        ]
    for name in found[0].keys() | found[1].keys():
        torch.testing.assert_close(found[0][name], found[1][name], rtol=0, atol=2e-5)
