"""Bands read in blocks: the same numbers as a matrix of energies, in linear memory."""

import pytest
import torch

from bench.api import blocks
from bench.api.build import build_variant
from bench.api.call import Dims, QueryShape
from bench.api.resolve import resolve
from bench.api.source import Source
from bench.conformance.checks_cost import Meter

ROWS, HEADS, WIDTH = 2, 4, 6
GIVEN = frozenset({"padding", "stepwise", "equal_width", "equal_heads", "weights"})
MASKS = (
    "sliding_window[window=1]",
    "sliding_window[window=5]",
    "dilated[window=3,dilation=3]",
    "block_local[block=5]",
    "streaming[window=4,sinks=3]",
    "streaming[window=1,sinks=9]",
    "longformer[window=3,dilation=2,global_tokens=2]",
)
TWO_SIDED = MASKS[:4]


def build(selector, regime, impl, kv_heads=HEADS):
    torch.manual_seed(0)
    dims = Dims(HEADS, kv_heads, WIDTH, WIDTH, WIDTH, HEADS * WIDTH, regime)
    return build_variant(resolve(selector), dims, impl=impl, given=GIVEN).double()


def draw(length, kv_heads=HEADS, padded=False):
    rng = torch.Generator().manual_seed(length)

    def normal(heads):
        made = torch.randn(ROWS, heads, length, WIDTH, generator=rng, dtype=torch.float64)
        return made.requires_grad_()

    lengths = torch.tensor([length, max(0, length - 9)])
    mask = torch.arange(length) < lengths[:, None] if padded else None
    return normal(HEADS), Source(normal(kv_heads), normal(kv_heads), mask=mask)


def answered(variant, query, source, split=None):
    like = QueryShape(ROWS, HEADS, WIDTH, torch.float64, torch.device("cpu"))
    causal = variant.dims.regime == "causal"
    memory = None if causal else variant.receive(source)
    state, outputs, at = variant.start(memory, like), [], 0
    for size in split or (query.shape[2],):
        part = slice(at, at + size)
        mask = None if source.mask is None else source.mask[:, part]
        new = Source(source.key[:, :, part], source.value[:, :, part], mask=mask)
        found = variant.attend(
            query[:, :, part], memory, state, new=new if causal else None, want_weights=False
        )
        state, at = found.state, at + size
        outputs.append(found.output)
    return torch.cat(outputs, 2)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "SMALLEST", 4)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("length", [7, 16, 37])
@pytest.mark.parametrize(
    ("mask", "regime"),
    [*((mask, "causal") for mask in MASKS), *((mask, "self") for mask in TWO_SIDED)],
)
def test_blocks_equal_the_matrix(monkeypatch, mask, regime, length, padded):
    monkeypatch.setattr("bench.api.fused_chain.blocks_pay", lambda call, reach: True)
    query, source = draw(length, padded=padded)
    real = slice(None) if source.mask is None else source.mask[:, None, :, None]
    found = []
    for impl in ("auto", "eager"):
        output = answered(build(mask, regime, impl), query, source)
        output = output if source.mask is None else output * real
        grads = torch.autograd.grad(output.square().sum(), (query, source.key, source.value))
        found.append((output, *grads))
    for mine, wanted in zip(*found, strict=True):
        torch.testing.assert_close(mine, wanted, rtol=0, atol=1e-11)


@pytest.mark.parametrize("split", [(20, 1, 20), (13, 28), (1, 40)])
@pytest.mark.parametrize("mask", MASKS)
def test_blocks_behind_a_cache_that_forgets_equal_the_matrix(mask, split):
    query, source = draw(41)
    with torch.no_grad():
        found = answered(build(mask, "causal", "auto"), query, source, split)
        wanted = answered(build(mask, "causal", "eager"), query, source)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-11)


def test_heads_that_share_keys_are_read_in_blocks():
    query, source = draw(37, kv_heads=2)
    one, two = (
        answered(build("sliding_window[window=5]", "causal", impl, 2), query, source)
        for impl in ("auto", "eager")
    )
    torch.testing.assert_close(one, two, rtol=0, atol=1e-11)


@pytest.mark.parametrize("mask", ["sliding_window[window=8]", "streaming[window=8,sinks=2]"])
def test_no_matrix_is_held(mask):
    peaks = []
    for length in (256, 512, 1024):
        query, source = draw(length)
        with torch.no_grad(), Meter() as meter:
            answered(build(mask, "causal", "auto"), query, source)
        peaks.append(meter.peak)
    assert peaks[2] < 2.1 * peaks[1] < 4.5 * peaks[0]


def test_positions_that_add_to_energies_are_added_in_a_window():
    selector = "sliding_window[window=5,position=alibi]"
    query, source = draw(37)
    one, two = (
        answered(build(selector, "causal", impl), query, source) for impl in ("auto", "eager")
    )
    torch.testing.assert_close(one, two, rtol=0, atol=1e-11)
