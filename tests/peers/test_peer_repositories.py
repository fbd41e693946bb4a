"""Code in Git repositories: positions, normalizers and mechanisms beneath the heads."""

import numpy as np
import pytest
import torch

import variants
from bench.api.source import Source, State
from tests.peers.agreement import (
    attend,
    below_heads,
    copy_weights,
    draw_parameters,
    drawn,
    peer,
)
from tests.peers.repositories import taken, tie

FLOAT = torch.float32
HEADS, LENGTH, WIDTH = 3, 12, 6
PLACES = f"{LENGTH} places"


@pytest.fixture
def doubles():
    """Numbers of float64 where the other code says nothing of a precision."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(FLOAT)


def three(dtype=torch.float64, length=LENGTH):
    found = [drawn(2, HEADS, length, WIDTH, seed=seed, dtype=dtype) for seed in range(3)]
    return dict(zip(("query", "key", "value"), found, strict=True))


def energies(query, key, **_):
    return query @ key.mT * WIDTH**-0.5


def later():
    return torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)


def causal(energy, value):
    return energy.masked_fill(later(), float("-inf")).softmax(-1) @ value


def test_a_learned_span_is_that_of_adaptive_span(agree):
    """The keys that it gets are one step later, because a query of ours reads its own key."""
    name, largest, ramp = "facebookresearch/adaptive-span", 16, 4
    span = taken(name, "adaptive_span.py", "AdaptiveMask AdaptiveSpan")
    layers = taken(name, "models.py", "_skew _unskew SeqAttention", AdaptiveSpan=span.AdaptiveSpan)
    theirs = layers.SeqAttention(
        WIDTH,
        HEADS,
        largest,
        dropout=0.0,
        adapt_span_params={
            "adapt_span_enabled": True,
            "adapt_span_loss": 0.0,
            "adapt_span_ramp": ramp,
            "adapt_span_init": 0.0,
            "adapt_span_cache": False,
        },
        pers_mem_params={"pers_mem_size": 0},
    ).double()
    share = theirs.adaptive_span._mask.current_val
    copy_weights({share: torch.tensor([0.15, 0.4, 0.7])[:, None, None]})
    chosen = f"adaptive_span[largest={largest},ramp={ramp}]"
    mine = below_heads(chosen, heads=HEADS, width=WIDTH)
    tie(mine.normalizer, "share", share)
    inputs = three(length=largest - 1 + LENGTH)
    query, key, value = (x.flatten(0, 1) for x in inputs.values())
    after = torch.zeros(len(key), 1, WIDTH, dtype=key.dtype)
    no_places = torch.zeros(1, WIDTH, largest, dtype=key.dtype)
    found = theirs(
        query[:, largest - 1 :],
        torch.cat((key, after), 1),
        torch.cat((value, after), 1),
        no_places,
    )
    agree(
        chosen,
        name,
        f"{LENGTH} queries behind {largest - 1} keys, gradient of the spans",
        attend(mine, **inputs)[:, :, largest - 1 :],
        found.unflatten(0, (2, HEADS)),
        inputs={**inputs, "share": share},
        limit=1e-6,
        note="with the key of the query, and a ramp within the largest span; it adds 1e-8 to sums",
    )


@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize("regime", ["causal", "self"])
def test_cosines_of_distances_are_those_of_cosformer(agree, regime):
    name, dim = "OpenNLPLab/cosFormer", 2 * HEADS * WIDTH
    theirs = taken(name, "cosformer.py", "CosformerAttention", np=np).CosformerAttention(
        dim, HEADS, causal=regime == "causal"
    )
    draw_parameters(theirs)
    chosen = f"cosformer[longest={LENGTH}]"
    mine = variants.build(chosen, dim=dim, heads=HEADS, regime=regime, projection_bias=True)
    mine.variant.eps = 0.0
    pairs = {
        f"{one}.{part}": (
            getattr(getattr(mine.heads, f"to_{one}"), part),
            getattr(getattr(theirs, other), part),
        )
        for one, other in zip(
            ("query", "key", "value", "output"),
            ("q_proj", "k_proj", "v_proj", "out_proj"),
            strict=True,
        )
        for part in ("weight", "bias")
    }
    copy_weights(dict(pairs.values()))
    x = drawn(2, LENGTH, dim, seed=40)
    agree(
        chosen,
        name,
        f"{PLACES}, " + ("causal" if regime == "causal" else "both directions"),
        mine(x),
        theirs(x.transpose(0, 1)).transpose(0, 1),
        inputs={"x": x, **pairs},
        note="a length as long as the sequence, and without our 1e-6 in the sum of weights",
    )


def test_shares_of_distances_are_those_of_fire_in_another_project(agree):
    name = "mcleish7/arithmetic"
    fire = taken(name, "cramming/architectures/embeddings.py", "FIRE").FIRE
    theirs = fire(num_heads=HEADS, mlp_width=8, init_c=0.3, init_L=5.0).eval()
    copy_weights({theirs.L_multiplier: torch.tensor(1.2)})
    chosen = "fire[threshold=5.0,width=8]"
    mine = below_heads(chosen, heads=HEADS, width=WIDTH, dtype=FLOAT)
    (position,), (inward, _, outward) = mine.positions, theirs.mlp
    pairs = {
        "rate": (position.rate, theirs.c),
        "multiple": (position.multiple, theirs.L_multiplier),
        "inward": (position.inward.weight, inward.weight),
        "inward bias": (position.inward.bias, inward.bias),
        "outward": (position.outward.weight, outward.weight),
        "outward bias": (position.outward.bias, outward.bias),
    }
    copy_weights(dict(pairs.values()))
    inputs = three(FLOAT)
    agree(
        chosen,
        name,
        f"bias of the energies, {PLACES} and a threshold of 6",
        attend(mine, **inputs),
        causal(energies(**inputs) + theirs(LENGTH, "cpu"), inputs["value"]),
        inputs={**inputs, **pairs},
    )


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_kernels_of_distances_are_those_of_kerple(agree, monkeypatch, kernel):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: "cpu")
    name, kind = "chijames/KERPLE", {"log": "ParallelKerpleLog", "power": "ParallelKerplePower"}
    module = taken(
        name,
        "megatron/mpu/layers.py",
        kind[kernel],
        get_model_parallel_world_size=lambda: 1,
        get_model_parallel_rank=lambda: 0,
    )

    class Asked:
        num_attention_heads = HEADS
        pos_emb = {"log": "kerple_log", "power": "kerple_power_ap_"}[kernel]
        params_dtype = torch.float64

    theirs = getattr(module, kind[kernel])(Asked)
    copy_weights(
        {
            theirs.bias_p: torch.tensor([0.5, 1.1, 1.7])[:, None, None],
            theirs.bias_a: torch.tensor([0.9, 0.2, 0.6])[:, None, None],
        }
    )
    chosen = f"kerple[kernel={kernel}]"
    mine = below_heads(chosen, heads=HEADS, width=WIDTH)
    first, second = theirs.bias_p.flatten(), theirs.bias_a.flatten()
    height, rate = (first, unsoft(second)) if kernel == "log" else (second, (first / 2).logit())
    tie(mine.positions[0], "height", unsoft(height))
    tie(mine.positions[0], "rate", rate)
    inputs = three()
    agree(
        chosen,
        name,
        f"bias of the energies, {PLACES}",
        attend(mine, **inputs),
        causal(theirs(energies(**inputs)), inputs["value"]),
        inputs={**inputs, "p": theirs.bias_p, "a": theirs.bias_a},
        note="numbers within the range to which it clamps",
    )


def unsoft(x):
    """What a softplus makes to x."""
    return x.expm1().log()


def test_a_rectified_softmax_is_softpick(agree):
    """A sum of ours is smaller by its largest term, and so is what is added to it."""
    name = "zaydzuhri/softpick-attention"
    softpick = taken(name, "naive_softpick_attn.py", "softpick").softpick
    inputs = three()
    energy = energies(**inputs).masked_fill(later(), float("-inf"))
    eps = 1e-6 * (-energy.amax(-1, keepdim=True)).exp()
    agree(
        "softpick",
        name,
        f"causal, {PLACES}",
        attend(below_heads("softpick", heads=HEADS, width=WIDTH), **inputs),
        softpick(energy, eps=eps) @ inputs["value"],
        inputs=inputs,
        note="with our 1e-6 in the denominator, where its code has 1e-8",
    )


def test_causal_attention_by_softpick_is_that_of_its_plain_code(agree, monkeypatch):
    name = "zaydzuhri/softpick-attention"
    module = taken(
        name,
        "naive_softpick_attn.py",
        "softpick naive_softpick_attn",
        rearrange=peer("einops").rearrange,
    )
    monkeypatch.setattr("variants.normalizers.softpick.EPS", 1e-8)
    inputs = three(FLOAT)
    theirs, _ = module.naive_softpick_attn(*inputs.values(), head_first=True)
    agree(
        "softpick",
        name,
        f"its attention as a whole, {PLACES}",
        attend(below_heads("softpick", heads=HEADS, width=WIDTH, dtype=FLOAT), **inputs),
        theirs,
        inputs=inputs,
        note="with the 1e-8 of its code in the denominator",
    )


@pytest.mark.usefixtures("doubles")
def test_a_memory_that_is_erased_and_added_to_is_that_of_pytorch_ntm(agree):
    """Its controller says what to write, and here it says our value; its shifts run backwards."""
    name, slots, asked = "loudinthecloud/pytorch-ntm", 5, 4
    memory = taken(name, "ntm/memory.py", "_convolve NTMMemory", np=np).NTMMemory(slots, WIDTH)
    heads = taken(name, "ntm/head.py", "_split_cols NTMHeadBase NTMReadHead NTMWriteHead", np=np)
    reading, writing = heads.NTMReadHead(memory, asked), heads.NTMWriteHead(memory, asked + WIDTH)
    for seed, layer in enumerate((reading.fc_read, writing.fc_write)):
        draw_parameters(layer, seed=10 * seed)
    said, added = WIDTH + 6, 2 * WIDTH + 6
    with torch.no_grad():
        to_write = writing.fc_write
        to_write.weight[:added, asked:] = 0
        to_write.weight[added:] = torch.eye(WIDTH, asked + WIDTH).roll(asked, 1)
        to_write.bias[added:] = 0
    # strength, gate, sharpness and shifts, where it has the shifts before the sharpness
    order = [*range(WIDTH + 2), WIDTH + 5, WIDTH + 4, WIDTH + 3, WIDTH + 2]
    written = [*range(said, added), *order]
    chosen = f"ntm_memory[reach=1,slots={slots}]"
    mine = below_heads(chosen, heads=1, width=asked, value_width=WIDTH)
    tie(mine, "reading", reading.fc_read.weight[order].mT[None])
    tie(mine, "reading_bias", reading.fc_read.bias[order][None, None])
    tie(mine, "writing", to_write.weight[written, :asked].mT[None])
    tie(mine, "writing_bias", to_write.bias[written][None, None])

    query, key = (drawn(2, 1, LENGTH, asked, seed=seed) for seed in range(2))
    value, begin = drawn(2, 1, LENGTH, WIDTH, seed=2), drawn(2, slots, WIDTH, seed=3)
    reads, writes = (drawn(2, slots, seed=seed).detach().softmax(-1) for seed in (4, 5))
    before = {"memory": begin[:, None], "reads": reads[:, None], "writes": writes[:, None]}
    found = mine.attend(query, None, State(carried=before), new=Source(key=key, value=value))
    memory.batch_size, memory.memory = 2, begin
    theirs = []
    for at in range(LENGTH):
        writes = writing(torch.cat((key, value), -1)[:, 0, at], writes)
        read, reads = reading(query[:, 0, at], reads)
        theirs.append(read)
    agree(
        chosen,
        name,
        f"{LENGTH} steps of one head that write and then read, from a memory that is not empty",
        found.output[:, 0],
        torch.stack(theirs, 1),
        inputs={
            "query": query,
            "key": key,
            "value": value,
            "memory": begin,
            "reading": reading.fc_read.weight,
            "reading bias": reading.fc_read.bias,
        },
        note="its shifts run the other way, and its controller says our values",
    )
