"""Every name is timed with the heads of its slot, and its cache is as large as papers say."""

import pytest
import torch

from bench.api import registry
from bench.api.axes import ABSENT, VARIANT_AXES
from bench.api.cell import Cell
from bench.api.errors import InvalidConfig
from bench.api.resolve import resolve
from bench.timing.fitted_heads import dims_of_slot, fitted
from bench.timing.shape import AttendShape
from bench.timing.slot_block import measure_slots
from bench.timing.timed_slot import build_timed_slot

SHAPE = AttendShape(batch=1, heads=8, length=256, width=64, place="slot")
"""A layer of a model that answers users."""
SMALL = AttendShape(batch=1, heads=8, length=5, width=8, place="slot")
FLOAT = 4
ONE_HEAD = {"raw", "sagan", "snail"}
"""Heads that have no number of heads."""
PROTOCOL = "rounds[count=1,visit_ms=0.1,samples=1,budget_ms=0.2,least=1,workloads=forward]"


def names():
    axes = ("recipe", "mechanism", *VARIANT_AXES)
    return sorted({name for axis in axes for name in registry.registrations(axis)})


def with_own_heads():
    found = []
    for name in set(names()) - set(ABSENT.values()):
        try:
            spec = resolve(name)
        except InvalidConfig:  # a component of several axes is no variant
            continue
        if spec.axes["head"][0].name != "auto":
            found.append(name)
    return sorted(found)


def cell(variant, shape, **more):
    place = {"task": shape.show(), "backbone": "none", "slot": shape.regime, "protocol": PROTOCOL}
    return Cell(kind="speed", variant=variant, **place, **more)


def measured(variants, shape, base="scaled_dot", **more):
    cells = [cell(name, shape, **more) for name in variants]
    found = measure_slots(cells, cell(base, shape, **more))
    return {one.variant: found[one.id] for one in cells}


def values(outcome):
    return {row.metric: row.value for row in outcome.rows if not row.baseline}


@pytest.mark.parametrize("variant", with_own_heads())
def test_every_name_has_the_heads_that_were_asked(variant):
    spec = fitted(resolve(variant), SHAPE)
    dims = dims_of_slot(spec, SHAPE)
    if spec.axes["head"][0].name in ONE_HEAD:
        assert dims.heads == 1
        return
    assert dims.heads == SHAPE.heads
    own = dims.key_width if variant != "mla" else latent_heads(spec).width
    assert own == SHAPE.width


def latent_heads(spec):
    return build_timed_slot(spec, SHAPE, "auto").slot.heads


@pytest.mark.parametrize(
    ("variant", "key_heads"),
    [
        ("mha", 8),
        ("gqa", 4),
        ("gqa[heads=8,kv_heads=2]", 2),
        ("gqa[kv_heads=4]", 8),
        ("mqa", 1),
        ("gated_attention", 8),
        ("mla", 1),
        ("mla[form=naive]", 8),
    ],
)
def test_key_heads_keep_their_share_and_a_single_one_stays_single(variant, key_heads):
    assert dims_of_slot(fitted(resolve(variant), SHAPE), SHAPE).kv_heads == key_heads


def test_widths_of_latent_attention_follow_the_head_unless_they_were_asked():
    usual = fitted(resolve("mla"), SHAPE).axes["head"][0].options
    assert (usual["latent"], usual["turned"], usual["query_latent"]) == (256, 32, 0)
    asked = fitted(resolve("mla[latent=64,query_latent=16]"), SHAPE).axes["head"][0].options
    assert (asked["latent"], asked["turned"], asked["query_latent"]) == (64, 32, 16)


def test_everything_but_the_heads_stays():
    asked = resolve("mqa[position=rope,normalizer=logistic_sigmoid]")
    found = fitted(asked, SHAPE)
    assert {k: v for k, v in found.axes.items() if k != "head"} == {
        k: v for k, v in asked.axes.items() if k != "head"
    }
    assert fitted(resolve("retnet"), SHAPE) == resolve("retnet")


@pytest.mark.parametrize(
    ("variant", "numbers"),
    [
        ("scaled_dot", 2 * 8 * 64),
        ("mha", 2 * 8 * 64),
        ("gqa", 2 * 4 * 64),
        ("gqa[heads=8,kv_heads=2]", 2 * 2 * 64),
        ("mqa", 2 * 64),
        ("mla", 4 * 64 + 32),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_token_keeps_what_table_1_of_deepseek_v2_says(variant, numbers, dtype):
    """2 n_h d_h of MHA, 2 n_g d_h of GQA, 2 d_h of MQA, and 9/2 d_h of MLA, for one layer."""
    found = values(measured([variant], SHAPE, dtype=dtype)[variant])
    size = FLOAT if dtype == "float32" else 2
    assert found["state_bytes"] / SHAPE.length == numbers * size


def test_rows_say_which_heads_were_used():
    found = measured(["mla", "mqa", "raw"], SMALL)
    sizes = ("heads_count", "key_heads_count", "key_width_count", "value_width_count")
    said = {name: [values(one)[size] for size in sizes] for name, one in found.items()}
    assert said == {"mla": [8, 1, 36, 32], "mqa": [8, 1, 8, 8], "raw": [1, 1, 64, 64]}


def test_the_baseline_has_the_heads_of_the_shape_too():
    (outcome,) = measured(["scaled_dot"], SMALL, base="gqa").values()
    kept = {row.baseline: row.value for row in outcome.rows if row.metric == "state_bytes"}
    assert kept == {"": 2 * 64 * 5 * FLOAT, "reference": 64 * 5 * FLOAT}


def test_ids_are_those_of_the_cells_that_were_asked():
    base = cell("scaled_dot", SMALL)
    asked = [cell("mha", SMALL), cell("mha[head=multi[heads=8]]", SMALL), base]
    found = measure_slots(asked, base)
    assert set(found) == {one.id for one in asked}
    assert values(found[asked[0].id])["heads_count"] == 8


def test_heads_that_cannot_have_the_shape_are_refused_and_others_go_on():
    shape = AttendShape(batch=1, heads=1, length=4, width=8, place="slot")
    found = measured(["mha_roles", "mha"], shape)
    assert found["mha_roles"].status == "refused"
    assert "heads cannot have this shape: roles" in found["mha_roles"].detail
    assert values(found["mha"])["heads_count"] == 1
    (alone,) = measured(["mha"], shape, base="mha_roles").values()
    assert {row.baseline for row in alone.rows} == {""}


def test_asking_for_sizes_draws_nothing_from_the_callers_random_numbers():
    torch.manual_seed(1)
    wanted = torch.rand(1)
    torch.manual_seed(1)
    dims_of_slot(resolve("gqa"), SHAPE)
    assert torch.equal(torch.rand(1), wanted)
