from dataclasses import replace

import pytest
import torch

from bench.api.errors import Refused
from bench.api.resolve import resolve
from bench.timing.shape import AttendShape, parse_rounds
from bench.timing.timed_dims import timed_dims
from bench.timing.timed_inputs import draw_inputs, fit_inputs
from bench.timing.timed_variant import Setting, _code
from bench.timing.workloads import MAKERS, build, forward
from tests.bench.timing.test_block import cell

SHAPE = AttendShape(batch=2, heads=4, length=7, width=3)


def inputs(shape=SHAPE):
    return draw_inputs(shape, torch.device("cpu"), torch.float32, 0)


def code(variant, shape=SHAPE):
    setting = Setting(shape, parse_rounds("rounds"), inputs(shape), torch.device("cpu"), 0)
    return _code(cell(variant), resolve(variant), setting)


def test_heads_that_share_keys_are_timed_as_code_of_their_own():
    codes = [code(name) for name in ("mha", "gqa", "mqa")]
    assert len(set(codes)) == 3
    assert code("mha") == code("scaled_dot") == code("qk_norm") == code("gqa[kv_heads=4]")
    assert code("mqa") == code("gqa[kv_heads=1]")


def test_latent_heads_are_timed_as_code_of_their_own_in_both_forms():
    names = ("mha", "rope", "mqa[position=rope]", "mla", "mla[form=naive]")
    assert len({code(name) for name in names}) == len(names)
    dims = timed_dims(resolve("mla[form=naive]"), SHAPE)
    assert (dims.heads, dims.kv_heads) == (4, 4)
    assert 0 < dims.turned_width < dims.key_width


@pytest.mark.parametrize(
    ("variant", "heads", "kv_heads"),
    [
        ("scaled_dot", 4, 4),
        ("gqa", 4, 2),
        ("gqa", 8, 4),
        ("gqa", 2, 1),
        ("gqa", 3, 1),
        ("mqa", 4, 1),
        ("gated_attention", 4, 4),
        ("gqa[heads=8]", 4, 1),
        ("scaled_dot[head=roles]", 4, 4),
        ("sagan", 2, 2),
    ],
)
def test_key_heads_keep_their_share_of_the_heads_of_a_shape(variant, heads, kv_heads):
    shape = AttendShape(heads=heads, width=8)
    dims = timed_dims(resolve(variant), shape)
    assert (dims.heads, dims.kv_heads, dims.query_width) == (heads, kv_heads, 8)
    assert dims.word_width == shape.dims.word_width


def test_asking_for_sizes_draws_nothing_from_the_callers_random_numbers():
    torch.manual_seed(1)
    wanted = torch.rand(1)
    torch.manual_seed(1)
    timed_dims(resolve("gqa"), SHAPE)
    assert torch.equal(torch.rand(1), wanted)


def test_inputs_are_cut_to_the_key_heads_that_there_are():
    drawn, dims = inputs(), timed_dims(resolve("gqa"), SHAPE)
    fitted = fit_inputs(drawn, dims)
    assert torch.equal(fitted.source.key, drawn.source.key[:, :2])
    assert torch.equal(fitted.next_source.value, drawn.next_source.value[:, :2])
    assert torch.equal(fitted.query, drawn.query)
    wider = fit_inputs(drawn, dims._replace(key_width=5, query_width=5))
    assert wider.source.key.shape == (2, 2, 7, 5)
    assert torch.equal(wider.query[..., 3:], drawn.query[..., :2])


@pytest.mark.parametrize("workload", MAKERS)
@pytest.mark.parametrize("variant", ["gqa", "mqa", "mla", "mla[form=naive]"])
def test_every_workload_runs_on_shared_keys(variant, workload):
    built = build(resolve(variant), SHAPE, "auto", seed=0)
    found = MAKERS[workload](built, inputs())()
    if workload == "forward_backward":
        assert all(one.grad.isfinite().all() for one in built.parameters())
        return
    queries = 1 if workload == "decode_step" else SHAPE.length
    assert found.output.shape == (SHAPE.batch, SHAPE.heads, queries, built.dims.value_width)
    assert found.output.isfinite().all()


def test_the_answer_is_that_of_keys_written_out_for_every_head():
    grouped = build(resolve("gqa"), SHAPE, "auto", seed=0)
    plain = build(resolve("mha"), SHAPE, "auto", seed=0)
    drawn = inputs()
    found = forward(grouped, drawn)().output
    key, value = (x[:, :2].repeat_interleave(2, 1) for x in (drawn.source.key, drawn.source.value))
    written = replace(drawn, source=replace(drawn.source, key=key, value=value))

    torch.testing.assert_close(forward(plain, written)().output, found)


def test_heads_that_cannot_have_the_shape_are_refused_and_are_no_failure():
    with pytest.raises(Refused, match="roles: pointing must be at least 1 and below heads=1"):
        timed_dims(resolve("mha_roles"), AttendShape(heads=1))
