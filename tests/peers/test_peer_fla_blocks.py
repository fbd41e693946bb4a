"""Flash linear attention: mixture of block attention, which wants another library's kernels.

Its choice of blocks and the sum of its two softmaxes are PyTorch; the softmaxes are kernels of
flash-attn, which needs a GPU. They are plain here, forward and backward.
"""

from itertools import pairwise

import torch

from tests.peers.agreement import attend, below_heads, drawn, peer

blocks = peer("fla.ops.moba.parallel", "flash-linear-attention")

HEADS, LENGTH, WIDTH = 3, 44, 6
FLOAT = torch.float32


def parts(cu_seqlens_q, cu_seqlens_k):
    """Packed sequences: where each of them lies among queries and keys."""
    of_queries, of_keys = (
        [slice(*ends) for ends in pairwise(x.tolist())] for x in (cu_seqlens_q, cu_seqlens_k)
    )
    return list(zip(of_queries, of_keys, strict=True))


def energies(q, k, scale, causal):
    energy = torch.einsum("lhe,she->hls", q, k) * scale
    hidden = torch.ones(energy.shape[1:], dtype=torch.bool).triu(1)
    return energy.masked_fill(hidden, float("-inf")) if causal else energy


def forward(q, k, v, cu_seqlens_q, cu_seqlens_k, softmax_scale, causal, **_):
    """Outputs, and the logarithms of the sums of exponentials, `H L`."""
    output, sums = torch.empty_like(q), q.new_empty(q.shape[1], q.shape[0])
    for few, some in parts(cu_seqlens_q, cu_seqlens_k):
        energy = energies(q[few], k[some], softmax_scale, causal)
        sums[:, few] = energy.logsumexp(-1)
        output[few] = torch.einsum("hls,she->lhe", energy.softmax(-1), v[some])
    return output, sums, None, None


def backward(dout, q, k, v, out, softmax_lse, dq, dk, dv, **options):
    """Gradients of a softmax whose sums and outputs are given, for they are those of all parts."""
    scale = options["softmax_scale"]
    for few, some in parts(options["cu_seqlens_q"], options["cu_seqlens_k"]):
        energy = energies(q[few], k[some], scale, options["causal"])
        weights = (energy - softmax_lse[:, few, None]).exp()
        along = torch.einsum("lhe,she->hls", dout[few], v[some])
        share = (dout[few] * out[few]).sum(-1).T[..., None]
        step = weights * (along - share) * scale
        dq[few] = torch.einsum("hls,she->lhe", step, k[some])
        dk[some] = torch.einsum("hls,lhe->she", step, q[few])
        dv[some] = torch.einsum("hls,lhe->she", weights, dout[few])


def test_chosen_blocks_are_those_of_fla(agree, monkeypatch):
    block, chosen = 8, 3
    monkeypatch.setattr(blocks, "flash_attn_varlen_func", forward)
    monkeypatch.setattr(blocks, "_flash_attn_varlen_forward", forward)
    monkeypatch.setattr(blocks, "_flash_attn_varlen_backward", backward)
    inputs = {
        name: drawn(1, HEADS, LENGTH, WIDTH, seed=seed, dtype=FLOAT)
        for seed, name in enumerate(("query", "key", "value"))
    }
    theirs = blocks.parallel_moba(
        *(x.transpose(1, 2).contiguous() for x in inputs.values()),
        torch.tensor([0, LENGTH], dtype=torch.int32),
        LENGTH,
        block,
        chosen,
    )
    name = f"moba[block={block},chosen={chosen}]"
    agree(
        name,
        "flash-linear-attention",
        f"{LENGTH} places, blocks of {block}",
        attend(below_heads(name, heads=HEADS, width=WIDTH, dtype=FLOAT), **inputs),
        theirs.transpose(1, 2),
        inputs=inputs,
        note="softmax in plain PyTorch in place of the kernels of flash-attn that it calls",
    )
