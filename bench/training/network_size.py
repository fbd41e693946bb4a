"""How large a network is: its trained parameters, and the FLOPs of one forward pass."""

import torch

from bench.api.cell import Cell
from bench.api.noise import Noise
from bench.api.task import Task
from bench.api.trace import Mode
from bench.timing.flops import count_operations
from bench.training.precision import computing
from bench.training.protocol import read_protocol
from bench.training.system import System


def parameters(system: System, task: Task, cell: Cell) -> int:
    """Trained parameters of the whole network."""
    return sum(one.numel() for one in system.parameters() if one.requires_grad)


def forward_flops(system: System, task: Task, cell: Cell) -> int:
    """FLOPs of the matrix products of one forward pass over the first batch of training.

    Losses are part of it. Gradients are on, because code that needs none may compute less. Weights
    are asked for as in training. A network that is to be used afterwards may not be given: a call
    may change its buffers. Some mechanisms compute more or less by their weights, so sizes compare
    between new networks.
    """
    generator = torch.Generator().manual_seed(cell.seed)
    batch = next(iter(task.training(read_protocol(cell.protocol).batch, generator)))
    batch = batch.to(torch.device(cell.device))
    mode = Mode(read="train", noise=Noise(cell.seed), want_weights=system.wants_weights)
    devices = [torch.device("cuda")] if cell.device == "cuda" else []
    with torch.random.fork_rng(devices=devices), computing(cell):
        counted = count_operations(lambda: system.losses(batch, mode, system.init_carry()))
    return counted.matmul_flops
