"""Copying random strings in plain PyTorch: the training step that the harness has to keep up with.

`build`, `draw` and `step` can be imported, so that a benchmark alternates this loop with another
in one process. By itself it trains one model and prints its accuracy:

    python tests/benchmarks/bare_copy.py --model dot --cpu-seconds 20
"""

import argparse
import time
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

PAD, BOS, EOS, FIRST_SYMBOL = 0, 1, 2, 3
SYMBOLS, LONGEST = 16, 20
HIDDEN, EMBEDDING, BATCH, LEARNING_RATE, CLIP = 128, 64, 64, 3e-3, 1.0
VOCABULARY = FIRST_SYMBOL + SYMBOLS


class Batch(NamedTuple):
    """Strings and what the decoder reads and has to write, padded on the right."""

    source: Tensor
    """`B S`: symbols."""
    real: Tensor
    """`B S`: True at symbols."""
    inputs: Tensor
    """`B L`: begin, then the symbols."""
    targets: Tensor
    """`B L`: the symbols, then the end; `PAD` is not scored."""


def draw(size: int, rng: torch.Generator) -> Batch:
    """Draw `size` strings of 1 to `LONGEST` symbols, all lengths equally likely."""
    lengths = torch.randint(1, LONGEST + 1, (size,), generator=rng)
    width = int(lengths.max())
    real = torch.arange(width) < lengths[:, None]
    symbols = torch.randint(FIRST_SYMBOL, VOCABULARY, (size, width), generator=rng)
    source = symbols.masked_fill(~real, PAD)
    inputs = F.pad(source, (1, 0), value=BOS)
    targets = F.pad(source, (0, 1), value=PAD).scatter(1, lengths[:, None], EOS)
    return Batch(source, real, inputs, targets)


class Copier(nn.Module):
    """Encoder, embeddings and output layer; the decoders differ in their attention."""

    def __init__(self) -> None:
        super().__init__()
        self.embed_source = nn.Embedding(VOCABULARY, EMBEDDING, padding_idx=PAD)
        self.embed_target = nn.Embedding(VOCABULARY, EMBEDDING, padding_idx=PAD)
        self.encoder = nn.GRU(EMBEDDING, HIDDEN // 2, bidirectional=True, batch_first=True)
        self.bridge = nn.Linear(HIDDEN, HIDDEN)
        self.output = nn.Linear(HIDDEN, VOCABULARY)

    def forward(self, batch: Batch) -> Tensor:
        """Return logits at every target position (`B L V`), teacher-forced."""
        packed = pack_padded_sequence(
            self.embed_source(batch.source),
            batch.real.sum(1),
            batch_first=True,
            enforce_sorted=False,
        )
        outputs, last = self.encoder(packed)
        memory, _ = pad_packed_sequence(outputs, batch_first=True)
        state = torch.tanh(self.bridge(torch.cat([last[0], last[1]], dim=1)))
        return self.output(self.decode(self.embed_target(batch.inputs), state, memory, batch.real))

    def decode(self, inputs: Tensor, state: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        """Return what the output layer reads at every step (`B L H`)."""
        raise NotImplementedError


class Dot(Copier):
    """Luong: all steps of the decoder first, then one product with the memory."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = nn.GRU(EMBEDDING, HIDDEN, batch_first=True)
        self.combine = nn.Linear(2 * HIDDEN, HIDDEN, bias=False)

    def decode(self, inputs: Tensor, state: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        states, _ = self.decoder(inputs, state[None])
        scores = states @ memory.transpose(1, 2)
        weights = scores.masked_fill_(~real[:, None], -torch.inf).softmax(-1)
        return torch.tanh(self.combine(torch.cat([weights @ memory, states], dim=-1)))


class Bahdanau(Copier):
    """Additive attention before each step; its context enters the GRU cell.

    The output layer is the published one: maxout over the old state, the word and the context.
    """

    def __init__(self) -> None:
        super().__init__()
        self.key = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.query = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.energy = nn.Linear(HIDDEN, 1, bias=False)
        self.decoder = nn.GRUCell(EMBEDDING + HIDDEN, HIDDEN)
        self.of_state = nn.Linear(HIDDEN, 2 * HIDDEN)
        self.of_word = nn.Linear(EMBEDDING, 2 * HIDDEN, bias=False)
        self.of_context = nn.Linear(HIDDEN, 2 * HIDDEN, bias=False)

    def decode(self, inputs: Tensor, state: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        keys = self.key(memory)
        padding = torch.zeros(real.shape).masked_fill_(~real, -torch.inf)[:, None]
        states, contexts = [], []
        for entering in inputs.unbind(1):
            energy = self.energy((keys + self.query(state)[:, None]).tanh_()).transpose(1, 2)
            context = ((energy + padding).softmax(-1) @ memory)[:, 0]
            states.append(state)
            contexts.append(context)
            state = self.decoder(torch.cat([entering, context], dim=1), state)
        read = self.of_state(torch.stack(states, 1)) + self.of_context(torch.stack(contexts, 1))
        return (read + self.of_word(inputs)).unflatten(-1, (-1, 2)).amax(-1)


MODELS = {"dot": Dot, "bahdanau": Bahdanau}


def build(model: str) -> nn.Module:
    """Build `dot` or `bahdanau`; seed with `torch.manual_seed` before."""
    return MODELS[model]()


def build_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Return AdamW at the setting of the measurements."""
    return torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Batch) -> Tensor:
    """Take one training step; returns the loss, detached."""
    loss = F.cross_entropy(model(batch).flatten(0, 1), batch.targets.flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    return loss.detach()


@torch.inference_mode()
def accuracy(model: nn.Module, batch: Batch) -> tuple[float, float]:
    """Return the shares of right tokens and of strings that are right as a whole.

    Teacher-forced; whole strings equal those of greedy decoding.
    """
    scored = batch.targets != PAD
    right = model(batch).argmax(-1) == batch.targets
    whole = (right | ~scored).all(1).float().mean()
    return right[scored].float().mean().item(), whole.item()


def main() -> None:
    parser = argparse.ArgumentParser(description="Plain PyTorch copying, one thread.")
    parser.add_argument("--model", choices=MODELS, default="dot")
    parser.add_argument("--cpu-seconds", type=float, nargs="+", default=[20.0])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    rng = torch.Generator().manual_seed(options.seed)
    held_out = draw(500, torch.Generator().manual_seed(10_000 + options.seed))
    model = build(options.model)
    optimizer = build_optimizer(model)
    seconds, steps = 0.0, 0
    for mark in sorted(options.cpu_seconds):
        begun = time.process_time() - seconds
        while seconds < mark:
            step(model, optimizer, draw(BATCH, rng))
            steps += 1
            seconds = time.process_time() - begun
        tokens, strings = accuracy(model, held_out)
        print(
            f"model {options.model}  cpu_s {seconds:.1f}  steps {steps}  "
            f"ms_per_step {1e3 * seconds / steps:.1f}  token_accuracy {tokens:.3f}  "
            f"string_accuracy {strings:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
