"""titans-pytorch: a memory that learns with momentum and forgets, by autograd."""

import torch

from tests.peers.agreement import attend, below_heads, copy_weights, draw_parameters, drawn, peer

titans = peer("titans_pytorch", "titans-pytorch")

LENGTH, WIDTH, EPS = 9, 6, 1e-6


def test_a_linear_memory_is_that_of_titans_pytorch(agree):
    theirs = titans.NeuralMemory(
        WIDTH,
        chunk_size=1,
        batch_size=1,
        model=titans.MemoryMLP(WIDTH, depth=1),
        store_memory_loss_fn=lambda guess, value: (guess - value).square().sum(-1) / 2,
        pre_rmsnorm=False,
        qk_rmsnorm=True,
        mem_model_norm_add_residual=False,
    ).double()
    draw_parameters(theirs)
    (memory,) = theirs.memory_model_parameters
    torch.nn.init.zeros_(memory)
    # a root mean square that makes vectors of length one, with what we add to their squares
    for norm in (theirs.q_norm, theirs.k_norm):
        torch.nn.init.constant_(norm.gamma, WIDTH**-0.5 - 1)
        norm.rmsnorm.eps = EPS / WIDTH
    mine = below_heads("titans", heads=1, width=WIDTH)
    forget = theirs.to_decay_factor[0]
    copy_weights({mine.bias: forget.bias})
    x = drawn(2, LENGTH, WIDTH)
    maps = theirs.to_queries, theirs.to_keys, theirs.to_values
    rates = {
        "rate": theirs.to_adaptive_step[0](x),
        "momentum": theirs.to_momentum[0](x),
        "forget": x @ forget.weight.T,
    }
    found = attend(
        mine,
        *(one(x)[:, None] for one in maps),
        key_extras={name: rate[:, None] for name, rate in rates.items()},
    )
    agree(
        "titans",
        "titans-pytorch",
        f"{LENGTH} places, one matrix, gradients of all maps",
        found[:, 0],
        theirs(x)[0],
        inputs={
            "x": x,
            "forget": (mine.bias, forget.bias),
            **{str(at): one.weight for at, one in enumerate((*maps, forget))},
            "rate": theirs.to_adaptive_step[0].weight,
            "momentum": theirs.to_momentum[0].weight,
        },
        note="a step for every token, half of the squared error, and vectors of length one",
    )
