"""Flash linear attention: the plain loops beside its kernels (`ops/*/naive.py`)."""

import importlib

import pytest
import torch
from torch.nn import functional

from tests.peers.agreement import attend, below_heads, copy_weights, drawn, peer

peer("fla.ops", "flash-linear-attention")

ROWS, HEADS, LENGTH, WIDTH, VALUE = 2, 3, 70, 6, 5
"""Longer than a chunk of 64."""
FLOAT = torch.float32
FLA = "flash-linear-attention"


def naive(name):
    return importlib.import_module(f"fla.ops.{name}.naive")


def by_head(width=WIDTH, seed=0, heads=HEADS):
    """`B H L E`, as ours."""
    return drawn(ROWS, heads, LENGTH, width, seed=seed, dtype=FLOAT)


def three(value=VALUE):
    found = by_head(), by_head(seed=1), by_head(value, seed=2)
    return dict(zip(("query", "key", "value"), found, strict=True))


def by_time(*tensors):
    """`B L H E`, as theirs."""
    return [x.transpose(1, 2) for x in tensors]


def unit(x):
    """Vectors of length one, as theirs before the loops."""
    return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()


def below(selector, value_width=VALUE, **options):
    return below_heads(
        selector, heads=HEADS, width=WIDTH, value_width=value_width, dtype=FLOAT, **options
    )


def test_linear_attention_is_that_of_fla_behind_the_same_features(agree):
    inputs = three()
    features = [functional.elu(inputs[name]) + 1 for name in ("query", "key")]
    theirs, _ = naive("linear_attn").naive_recurrent_linear_attn(
        *by_time(*features, inputs["value"]), scale=1.0, normalize=True
    )
    agree(
        "linear_attention",
        FLA,
        "70 places",
        attend(below("linear_attention"), **inputs),
        theirs.transpose(1, 2),
        inputs=inputs,
    )


def test_retention_is_that_of_fla(agree):
    inputs = three()
    agree(
        "retnet",
        FLA,
        "70 places, without rotation",
        attend(below("retnet[rotation=false]"), **inputs),
        naive("retention").naive_retention(*inputs.values()),
        inputs=inputs,
    )


def test_based_is_that_of_fla_behind_the_same_maps(agree):
    inputs = three()
    mine = below("based[width=4]")
    small = [
        torch.einsum("bhne,hew->bhnw", inputs[name], getattr(mine, f"to_{name}"))
        for name in ("query", "key")
    ]
    agree(
        "based[width=4]",
        FLA,
        "70 places, gradients of the maps",
        attend(mine, **inputs),
        naive("based").naive_parallel_based(*small, inputs["value"]),
        inputs={**inputs, "to_query": mine.to_query, "to_key": mine.to_key},
    )


def test_gated_linear_attention_is_that_of_fla(agree):
    inputs, said = three(), by_head(seed=4)
    mine = below("gla")
    gate = functional.logsigmoid(said + mine.bias[:, None]) / mine.temperature
    theirs, _ = naive("gla").naive_recurrent_gla(*by_time(*inputs.values(), gate))
    agree(
        "gla",
        FLA,
        "70 places, gradients of gates and biases",
        attend(mine, **inputs, key_extras={"decay": said}),
        theirs.transpose(1, 2),
        inputs={**inputs, "gate": said, "bias": mine.bias},
    )


def gated(seed=5, width=1):
    return by_head(width, seed=seed)


def slow(mine):
    """Steps as short as in a network: sums of long ones cost float32 digits in every chunk."""
    with torch.no_grad():
        mine.bias.sub_(3)
    return mine


def log_decay(said, mine):
    """Minus a rate times a softplus, as the layers of fla make it."""
    bias = mine.bias[:, None]
    return -mine.rate.exp()[:, None, None] * functional.softplus(said + bias)


def test_a_delta_rule_is_that_of_fla(agree):
    inputs, beta = three(), gated()
    query, key, value = inputs.values()
    theirs, _ = naive("delta_rule").delta_rule_recurrence(
        WIDTH**0.5 * unit(query), unit(key), value, beta.sigmoid()[..., 0]
    )
    agree(
        "deltanet",
        FLA,
        "70 places, without their scale of queries",
        attend(below("deltanet"), **inputs, key_extras={"beta": beta}),
        theirs,
        inputs={**inputs, "beta": beta},
    )


@pytest.mark.parametrize(
    ("name", "module", "function"),
    [
        ("gated_deltanet", "gated_delta_rule", "naive_recurrent_gated_delta_rule"),
        ("gated_deltanet", "gated_delta_rule", "naive_chunk_gated_delta_rule"),
        ("kda", "kda", "naive_recurrent_kda"),
    ],
)
def test_a_gated_delta_rule_is_that_of_fla(agree, name, module, function):
    inputs, beta = three(), gated()
    step = gated(6, WIDTH if name == "kda" else 1)
    mine = slow(below(name))
    query, key, value, rate = by_time(
        unit(inputs["query"]), unit(inputs["key"]), inputs["value"], log_decay(step, mine)
    )
    theirs, _ = getattr(naive(module), function)(
        q=query,
        k=key,
        v=value,
        g=rate if name == "kda" else rate[..., 0],
        beta=beta.sigmoid()[..., 0].transpose(1, 2),
        scale=1.0,
    )
    agree(
        name,
        FLA,
        f"70 places, {function}",
        attend(mine, **inputs, key_extras={"beta": beta, "step": step}),
        theirs.transpose(1, 2),
        inputs={**inputs, "beta": beta, "step": step, "rate": mine.rate, "bias": mine.bias},
    )


def test_several_delta_rules_a_token_are_those_of_fla(agree):
    inputs, beta, step = three(), gated(width=2), gated(6)
    more_keys, more_values = by_head(seed=7), by_head(VALUE, seed=8)
    mine = slow(below("gated_deltaproduct[products=2]"))
    key = torch.stack((inputs["key"], more_keys), 3).flatten(2, 3)
    value = torch.stack((inputs["value"], more_values), 3).flatten(2, 3)
    theirs, _ = naive("gated_delta_product").naive_recurrent_gated_delta_product(
        *by_time(unit(inputs["query"]), unit(key), value),
        g=log_decay(step, mine)[..., 0].transpose(1, 2),
        beta=2 * beta.sigmoid().flatten(2).transpose(1, 2),
        scale=1.0,
        num_householder=2,
    )
    extras = {"beta": beta, "step": step, "more_keys": more_keys, "more_values": more_values}
    agree(
        "gated_deltaproduct[products=2]",
        FLA,
        "70 places, two rules a token",
        attend(mine, **inputs, key_extras=extras),
        theirs.transpose(1, 2),
        inputs={**inputs, **extras},
    )


def test_the_recurrence_of_mamba2_is_the_simple_gate_of_fla(agree):
    inputs, said = three(), gated(6)
    mine = slow(below("mamba2_ssd"))
    step = functional.softplus(said + mine.bias[:, None])
    rate = -mine.rate.exp()[:, None, None] * step
    query, key, value, rate = by_time(inputs["query"], inputs["key"], step * inputs["value"], rate)
    simple = naive("simple_gla").naive_recurrent_simple_gla
    theirs, _ = simple(query, key, value, rate[..., 0], scale=1.0)
    skipped = mine.skip[:, None, None] * inputs["value"]
    agree(
        "mamba2_ssd",
        FLA,
        "70 places; steps and the skip are made outside",
        attend(mine, **inputs, key_extras={"step": said}),
        theirs.transpose(1, 2) + skipped,
        inputs={**inputs, "step": said, "rate": mine.rate},
    )


def test_forgetting_attention_is_that_of_fla(agree):
    inputs, forget = three(), gated()
    mine = below("fox")
    gate = functional.logsigmoid(forget + mine.positions[0].bias[:, None, None])
    theirs = naive("forgetting_attn").naive_forgetting_attn(
        *by_time(*inputs.values()), gate[..., 0].transpose(1, 2)
    )
    agree(
        "fox",
        FLA,
        "70 places, gradient of the gates",
        attend(mine, **inputs, key_extras={"forget": forget}),
        theirs.transpose(1, 2),
        inputs={**inputs, "forget": forget},
    )


@pytest.mark.parametrize("current", [False, True])
def test_stick_breaking_is_that_of_fla(agree, current):
    inputs = {name: x.detach().double().requires_grad_() for name, x in three().items()}
    name = "stick_breaking[mask=full]" if current else "stick_breaking"
    mine = below_heads(name, heads=HEADS, width=WIDTH, value_width=VALUE)
    theirs, _ = naive("stickbreaking_attn").naive_stickbreaking_attn(
        *by_time(*inputs.values()), attend_current=current
    )
    agree(
        name,
        FLA,
        "70 places",
        attend(mine, **inputs),
        theirs.transpose(1, 2),
        inputs=inputs,
    )


def test_every_unit_with_a_rate_that_writes_what_it_forgets_is_the_gate_of_fla(agree):
    inputs = three()
    mine = below("hgrn2")
    gate = inputs["key"].sigmoid()
    query, key, value, rate = by_time(
        WIDTH**0.5 * inputs["query"], 1 - gate, inputs["value"], gate.log()
    )
    theirs, _ = naive("gla").naive_recurrent_gla(query, key, value, rate)
    agree(
        "hgrn2",
        FLA,
        "70 places, the gated kernel with the gates of its layer",
        attend(mine, **inputs),
        theirs.transpose(1, 2),
        inputs=inputs,
    )


def test_erasing_and_writing_by_unit_is_that_of_fla(agree):
    inputs, erase, write, step = three(), gated(5, WIDTH), gated(7, VALUE), gated(6, WIDTH)
    mine = slow(below("gdn2"))
    theirs, _ = naive("gdn2").naive_recurrent_gdn2(
        *by_time(
            unit(inputs["query"]),
            unit(inputs["key"]),
            inputs["value"],
            log_decay(step, mine),
            erase.sigmoid(),
            write.sigmoid(),
        ),
        scale=1.0,
    )
    extras = {"erase": erase, "write": write, "step": step}
    agree(
        "gdn2",
        FLA,
        "70 places, gradients of all gates",
        attend(mine, **inputs, key_extras=extras),
        theirs.transpose(1, 2),
        inputs={**inputs, **extras, "rate": mine.rate, "bias": mine.bias},
    )


def test_the_mesa_layer_is_the_exact_solution_of_fla(agree):
    inputs, keep, beta = three(WIDTH), gated(5), gated(6)
    mine = below("mesa", WIDTH)
    # 0.25 is the least ridge, below which no training goes
    ridge = functional.softplus(mine.ridge) + 0.25
    query, key, value = by_time(unit(inputs["query"]), unit(inputs["key"]), inputs["value"])
    theirs, _, _ = naive("mesa_net").naive_mesa_net_exact(
        query,
        key,
        value,
        functional.logsigmoid(keep)[..., 0].transpose(1, 2),
        ridge,
        beta.sigmoid()[..., 0].transpose(1, 2),
    )
    agree(
        "mesa",
        FLA,
        "70 places, one system solved for each",
        attend(mine, **inputs, key_extras={"keep": keep, "beta": beta}),
        theirs.transpose(1, 2),
        inputs={**inputs, "keep": keep, "beta": beta, "ridge": mine.ridge},
    )


def test_log_linear_attention_is_that_of_fla(agree):
    inputs, step = three(), gated(6)
    levels = drawn(ROWS, LENGTH, HEADS, 8, seed=9, dtype=FLOAT)
    mine = slow(below("log_linear[levels=8]"))
    taken = functional.softplus(step + mine.bias[:, None])
    weights = functional.softplus(levels + mine.level_bias)
    query, key, value, rate = by_time(
        inputs["query"], inputs["key"], taken * inputs["value"], log_decay(step, mine)
    )
    theirs = naive("log_linear_attn").naive_log_linear_attn(
        query, key, value, rate[..., 0], weights
    )
    agree(
        "log_linear[levels=8]",
        FLA,
        "70 places in 8 levels, gradients of the levels",
        attend(mine, **inputs, key_extras={"step": step}, query_extras={"levels": levels}),
        theirs.transpose(1, 2),
        inputs={**inputs, "step": step, "levels": levels},
    )


def test_gated_slots_are_those_of_fla(agree):
    inputs, gate = three(), gated(5, 4)
    mine = below("gsa[slots=4]")
    log_gate = functional.logsigmoid(gate) / mine.temperature
    theirs, _ = naive("gsa").naive_recurrent_gsa(
        *by_time(*inputs.values(), 1 - log_gate.exp(), log_gate)
    )
    agree(
        "gsa[slots=4]",
        FLA,
        "70 places, 4 slots, gradient of the gates",
        attend(mine, **inputs, key_extras={"gate": gate}),
        theirs.transpose(1, 2),
        inputs={**inputs, "gate": gate},
    )


def test_the_matrix_of_rwkv7_is_the_generalized_delta_rule_of_fla(agree):
    dplr = importlib.import_module("fla.ops.generalized_delta_rule.dplr.naive")
    inputs, decay, share = three(), gated(5, WIDTH), gated(6, WIDTH)
    mine = below("rwkv7")
    opened = (share + mine.share_bias[:, None]).sigmoid()
    removed = unit(inputs["key"] * mine.removal[:, None])
    mixed = inputs["key"] * (1 + (opened - 1) * mine.mixing[:, None])
    rate = -torch.exp(torch.tensor(-0.5)) * (decay + mine.decay_bias[:, None]).sigmoid()
    read, _ = dplr.dplr_recurrence(
        WIDTH**0.5 * inputs["query"], mixed, inputs["value"], -removed, opened * removed, rate
    )
    bonus = (inputs["query"] * mine.bonus[:, None] * mixed).sum(-1, keepdim=True)
    agree(
        "rwkv7",
        FLA,
        "70 places; gates and the bonus are made outside",
        attend(mine, **inputs, key_extras={"decay": decay, "share": share}),
        read + bonus * inputs["value"],
        inputs={**inputs, "decay": decay, "share": share},
    )


@pytest.mark.parametrize("selector", ["hedgehog", "dpfp[shifts=2]"])
@pytest.mark.parametrize("regime", ["causal", "self"])
def test_features_are_those_of_fla(agree, selector, regime):
    modules = importlib.import_module("fla.modules.feature_map")
    inputs, mine = three(), below(selector, regime=regime)
    theirs = modules.DPFPFeatureMap(WIDTH, nu=2)
    if selector == "hedgehog":
        theirs = modules.HedgehogFeatureMap(WIDTH)
        doubled = 2 * torch.eye(WIDTH).repeat(HEADS, 1, 1)
        copy_weights({mine.to_query: doubled, mine.to_key: doubled})
    products = theirs(inputs["query"]) @ theirs(inputs["key"]).mT
    products = products.tril() if regime == "causal" else products
    agree(
        selector,
        FLA,
        "its features in a quadratic form, "
        + ("causal" if regime == "causal" else "both directions"),
        attend(mine, **inputs),
        products @ inputs["value"] / (products.sum(-1, keepdim=True) + 1e-6),
        inputs=inputs,
        note="its map is doubled, and ours too for that" if selector == "hedgehog" else "",
    )


@pytest.mark.parametrize("forget", [False, True])
def test_products_of_reflections_are_those_of_fla(agree, forget):
    inputs = three(WIDTH)
    extras = {"direction": gated(4, WIDTH), "strength": gated(5)}
    if forget:
        extras["forget"] = gated(6)
    mine = below(f"path[forget={str(forget).lower()}]", WIDTH)
    direction = functional.normalize(extras["direction"], dim=-1)
    strength = 2 * (extras["strength"][..., 0] + mine.bias[:, None]).sigmoid()
    gate = torch.zeros_like(strength)
    if forget:
        gate = functional.logsigmoid(extras["forget"][..., 0] + mine.forget_bias[:, None])
    # its gates are multiplied by the scale of energies, which the paper's are not
    theirs = naive("path_attn").naive_path_attn(
        *by_time(*inputs.values(), direction, strength, gate * WIDTH**0.5), scale=WIDTH**-0.5
    )
    agree(
        f"path[forget={str(forget).lower()}]",
        FLA,
        "70 places" + (", with forget gates" if forget else ""),
        attend(mine, **inputs, key_extras=extras),
        theirs.transpose(1, 2),
        inputs={**inputs, **extras},
        note="it multiplies the gates by the scale of the energies, which is undone here"
        if forget
        else "",
    )


def test_a_map_trained_on_keys_and_values_is_that_of_fla(agree):
    """Its map has a bias, which is a unit of our keys and queries that is always one.

    It adds what it read to the norm, where the paper adds the query. The norm of the sum has the
    direction of the norm, because the gain is one number a head; so the norm can be had from it.
    """
    batch, eps = 8, 1e-6
    mine = below(f"ttt[batch={batch}]", value_width=WIDTH)
    gain, rate = torch.tensor([0.7, 1.3, 0.9])[:, None], torch.tensor([0.3, -0.4, 0.1])
    copy_weights({mine.gain: gain.expand(-1, WIDTH)})
    inputs, one = three(WIDTH), torch.eye(WIDTH)[-1]
    query, key = (inputs[name] * (1 - one) for name in ("query", "key"))
    first = mine.first * (1 - one)[:, None]
    theirs, *_ = naive("ttt").chunk_ttt_linear_ref(
        *by_time(query, key, inputs["value"]),
        mine.gain,
        mine.shift,
        (rate.sigmoid() / WIDTH).expand(ROWS, LENGTH, HEADS).unsqueeze(-1).clone(),
        scale=1.0,
        eps=eps,
        mini_batch_size=batch,
        initial_state=first.expand(ROWS, -1, -1, -1),
        initial_state_bias=mine.first[:, -1:].expand(ROWS, -1, -1, -1),
    )
    read = theirs.transpose(1, 2) - mine.shift[:, None]
    norm = functional.layer_norm(read, (WIDTH,)) * gain[:, None] + mine.shift[:, None]
    rates = rate[:, None, None].expand(ROWS, -1, LENGTH, 1)
    agree(
        f"ttt[batch={batch}]",
        FLA,
        f"{LENGTH} places in batches of {batch}, gradients of the first map and the shift",
        attend(mine, query + one, key + one, inputs["value"] + one, key_extras={"rate": rates}),
        query + one + norm,
        inputs={**inputs, "first": mine.first, "shift": mine.shift},
        note="one rate a head, for its rates belong to queries; its bias is a unit of our keys; it "
        "adds what it read to the norm, and not the query",
    )
