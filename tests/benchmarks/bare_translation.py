"""Multi30k German to English in plain PyTorch: the loop that the harness has to keep up with.

Nothing of the bench is used but its data loading. One thread, training measured in CPU seconds
(`time.process_time`), evaluation not counted. Example:

    python tests/benchmarks/bare_translation.py --model dot --cpu-seconds 40 80 120 \
        --data-dir DATA_DIR
"""

import argparse
import json
import time
from pathlib import Path

import sacrebleu
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tasks.data.bucketing import bucketed_batches, pad_rows
from tasks.data.multi30k import load_multi30k
from tasks.data.subwords import BOS, EOS, PAD, SubwordConfig, Subwords, corpus_subwords

HIDDEN, EMBEDDING, DROPOUT, BATCH, LEARNING_RATE, CLIP = 256, 192, 0.2, 128, 2e-3, 1.0
SLICE, LONGEST = 512, 60

Source = tuple[Tensor, Tensor]


class Encoder(nn.Module):
    """A bidirectional GRU over packed sentences."""

    def __init__(self, vocabulary: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, EMBEDDING, padding_idx=PAD)
        self.dropout = nn.Dropout(DROPOUT)
        self.gru = nn.GRU(EMBEDDING, HIDDEN // 2, bidirectional=True, batch_first=True)
        self.bridge = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, tokens: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        inputs = self.dropout(self.embed(tokens))
        packed = pack_padded_sequence(inputs, real.sum(1), batch_first=True, enforce_sorted=False)
        outputs, last = self.gru(packed)
        memory, _ = pad_packed_sequence(outputs, batch_first=True)
        return memory, torch.tanh(self.bridge(torch.cat([last[0], last[1]], dim=1)))


class Translator(nn.Module):
    """What the three models share: encoder, target embedding, vocabulary projection, loss.

    Each model adds `steps`: from embedded tokens (`B Lt E`) and a state to what the projection
    reads at every position (`B Lt H`) and the last state.
    """

    def __init__(self, source_vocabulary: int, target_vocabulary: int):
        super().__init__()
        self.encoder = Encoder(source_vocabulary)
        self.embed = nn.Embedding(target_vocabulary, EMBEDDING, padding_idx=PAD)
        self.dropout = nn.Dropout(DROPOUT)
        self.output = nn.Linear(HIDDEN, target_vocabulary)

    def loss(self, source: Source, target: Tensor, real: Tensor) -> Tensor:
        """Mean cross-entropy of the real target tokens; nothing is projected for the others.

        The projection goes in slices of 512 tokens, which measured 5 % faster than one piece.
        """
        memory, state = self.encoder(*source)
        inputs = self.dropout(self.embed(target[:, :-1]))
        kept = real[:, 1:].flatten().nonzero().squeeze(1)
        hidden, _ = self.steps(inputs, state, memory, source[1])
        hidden = self.dropout(hidden.flatten(0, 1).index_select(0, kept))
        wanted = target[:, 1:].flatten()[kept]
        total = torch.zeros(())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for some, answers in zip(hidden.split(SLICE), wanted.split(SLICE), strict=True):
                logits = self.output(some).float()
                total = total + F.cross_entropy(logits, answers, reduction="sum")
        return total / len(wanted)

    @torch.inference_mode()
    def translate(self, source: Source) -> list[list[int]]:
        """Decode greedily, a batch at a time, until every sentence has ended."""
        memory, state = self.encoder(*source)
        token = torch.full((len(memory),), BOS)
        ended = torch.zeros(len(memory), dtype=torch.bool)
        written = []
        while not ended.all() and len(written) < LONGEST:
            hidden, state = self.steps(self.embed(token)[:, None], state, memory, source[1])
            token = self.output(hidden[:, 0]).argmax(-1)
            written.append(token)
            ended |= token == EOS
        return torch.stack(written, dim=1).tolist()


class WithoutAttention(Translator):
    """The sentence is one vector."""

    def __init__(self, source_vocabulary: int, target_vocabulary: int):
        super().__init__(source_vocabulary, target_vocabulary)
        self.gru = nn.GRU(EMBEDDING, HIDDEN, batch_first=True)

    def read(self, states: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        return states

    def steps(
        self, inputs: Tensor, state: Tensor, memory: Tensor, real: Tensor
    ) -> tuple[Tensor, Tensor]:
        states, last = self.gru(inputs, state[None])
        return self.read(states, memory, real), last[0]


class Dot(WithoutAttention):
    """Luong: attention reads the states of all steps at once, h~ = tanh(Wc [c; s])."""

    def __init__(self, source_vocabulary: int, target_vocabulary: int):
        super().__init__(source_vocabulary, target_vocabulary)
        self.combine = nn.Linear(2 * HIDDEN, HIDDEN, bias=False)

    def read(self, states: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        scores = states @ memory.transpose(1, 2)
        weights = scores.masked_fill_(~real[:, None], -torch.inf).softmax(-1)
        return torch.tanh(self.combine(torch.cat([weights @ memory, states], dim=-1)))


class Bahdanau(Translator):
    """Additive attention before each step; its context enters the GRU cell.

    The output layer is the published one: maxout over the old state, the word and the context. The
    keys are computed once a sentence. Splitting the cell's weights, so that the share of the
    embeddings is computed once too, was measured and is not faster.
    """

    def __init__(self, source_vocabulary: int, target_vocabulary: int):
        super().__init__(source_vocabulary, target_vocabulary)
        self.key = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.query = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.energy = nn.Linear(HIDDEN, 1, bias=False)
        self.cell = nn.GRUCell(EMBEDDING + HIDDEN, HIDDEN)
        self.of_state = nn.Linear(HIDDEN, 2 * HIDDEN)
        self.of_word = nn.Linear(EMBEDDING, 2 * HIDDEN, bias=False)
        self.of_context = nn.Linear(HIDDEN, 2 * HIDDEN, bias=False)

    def steps(
        self, inputs: Tensor, state: Tensor, memory: Tensor, real: Tensor
    ) -> tuple[Tensor, Tensor]:
        keys = self.key(memory)
        padding = torch.zeros(real.shape).masked_fill_(~real, -torch.inf)[:, None]
        states, contexts = [], []
        for entering in inputs.unbind(1):
            energy = self.energy((keys + self.query(state)[:, None]).tanh_()).transpose(1, 2)
            context = ((energy + padding).softmax(-1) @ memory)[:, 0]
            states.append(state)
            contexts.append(context)
            state = self.cell(torch.cat([entering, context], dim=1), state)
        read = self.of_state(torch.stack(states, 1)) + self.of_context(torch.stack(contexts, 1))
        return (read + self.of_word(inputs)).unflatten(-1, (-1, 2)).amax(-1), state


MODELS = {"none": WithoutAttention, "dot": Dot, "bahdanau": Bahdanau}


class Data:
    """Encoded sentences, and the vocabularies that made them."""

    def __init__(self, data_dir: Path | None, num_test: int):
        corpus = load_multi30k(("de", "en"), data_dir)
        config = SubwordConfig(size=3000, lowercase=True)
        self.german = corpus_subwords(corpus, ["de"], config)
        self.english: Subwords = corpus_subwords(corpus, ["en"], config)
        self.source = self.german.encode_lines(corpus.train["de"], eos=True)
        self.target = self.english.encode_lines(corpus.train["en"], bos=True, eos=True)
        self.test = self.german.encode_lines(corpus.test["de"][:num_test], eos=True)
        self.references = list(corpus.test["en"][:num_test])
        self.lengths = list(zip(map(len, self.target), map(len, self.source), strict=True))


class Trainer:
    """One model, its optimizer, and an account of the CPU seconds it used."""

    def __init__(self, model: Translator, data: Data, seed: int):
        self.model, self.data = model, data
        self.optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=True)
        self.rng = torch.Generator().manual_seed(seed)
        self.queue: list[list[int]] = []
        self.steps, self.tokens, self.seconds, self.last_loss = 0, 0, 0.0, 0.0

    def train_until(self, cpu_seconds: float) -> None:
        self.model.train()
        begun = time.process_time() - self.seconds
        while self.seconds < cpu_seconds:
            self.step()
            self.seconds = time.process_time() - begun

    def step(self) -> None:
        if not self.queue:
            self.queue = bucketed_batches(self.data.lengths, BATCH, self.rng, pool_batches=10)
        chosen = self.queue.pop()
        source = pad_rows([self.data.source[index] for index in chosen])
        target, real = pad_rows([self.data.target[index] for index in chosen])
        loss = self.model.loss(source, target, real)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.steps += 1
        self.tokens += sum(self.data.lengths[index][0] - 1 for index in chosen)
        self.last_loss = loss.item()

    def bleu(self, batch_size: int = 250) -> float:
        """Translate the test sentences and score them, lower-cased."""
        self.model.eval()
        order = sorted(range(len(self.data.test)), key=lambda index: len(self.data.test[index]))
        texts = [""] * len(order)
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            written = self.model.translate(pad_rows([self.data.test[index] for index in chosen]))
            for index, ids in zip(chosen, written, strict=True):
                texts[index] = self.data.english.decode(ids)
        return sacrebleu.corpus_bleu(texts, [self.data.references], lowercase=True).score


def main() -> None:
    parser = argparse.ArgumentParser(description="Plain PyTorch translation, one thread.")
    parser.add_argument("--model", choices=MODELS, default="dot")
    parser.add_argument("--cpu-seconds", type=float, nargs="+", default=[60.0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sentences", type=int, default=1000, help="test sentences to translate")
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    data = Data(options.data_dir, options.sentences)
    model = MODELS[options.model](data.german.size, data.english.size)
    trainer = Trainer(model, data, options.seed)
    for mark in sorted(options.cpu_seconds):
        trainer.train_until(mark)
        facts = {
            "model": options.model,
            "seed": options.seed,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "cpu_s": round(trainer.seconds, 1),
            "steps": trainer.steps,
            "tokens_per_s": round(trainer.tokens / trainer.seconds),
            "loss": round(trainer.last_loss, 3),
            "bleu": round(trainer.bleu(), 2),
            "sentences": options.sentences,
        }
        told = "  ".join(f"{name} {value}" for name, value in facts.items())
        print(json.dumps(facts) if options.json else told, flush=True)


if __name__ == "__main__":
    main()
