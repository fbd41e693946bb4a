"""Word translation probabilities, estimated by IBM model 1 and gathered sparsely.

Brown et al., 1993, "The mathematics of statistical machine translation: parameter estimation",
https://aclanthology.org/J93-2003, section 4.2; as a lexicon for attention by Arthur, Neubig &
Nakamura, 2016, https://arxiv.org/abs/1606.02006, section 4.

A source word keeps its likeliest translations; what is left of its probability goes to UNK. BOS,
EOS and UNK translate to themselves, and padding, which is id 0, to nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bench.api.output import OutputSizes, Pair

CHUNK_PAIRS = 1000
"""Sentences whose links are made at once; bounds memory, changes nothing."""


class Translations(NamedTuple):
    """t(e | f) of every pair of words that occur together; ids of f are `source_vocab` for NULL."""

    source: Int[Tensor, " N"]
    target: Int[Tensor, " N"]
    chance: Float[Tensor, " N"]


def ibm_model_1(
    pairs: Sequence[Pair], source_vocab: int, target_vocab: int, rounds: int
) -> Translations:
    """Expectation maximization from the uniform table; every sentence has a NULL word.

    Deterministic: the likelihood has one maximum that the uniform start reaches, and sums are made
    in one order. Time and memory O(links), at most the product of lengths, summed over pairs.
    """
    keys, groups = _links(pairs, source_vocab, target_vocab)
    known, link = torch.unique(keys, return_inverse=True)
    source, target = known // target_vocab, known % target_vocab
    chance = torch.ones(len(known), dtype=torch.float64)
    count = int(groups[-1]) + 1 if len(groups) else 0
    for _ in range(rounds):
        likely = chance[link]
        total = torch.zeros(count, dtype=torch.float64).index_add(0, groups, likely)
        share = likely / total[groups]
        counted = torch.zeros_like(chance).index_add(0, link, share)
        norm = torch.zeros(source_vocab + 1, dtype=torch.float64).index_add(0, source, counted)
        chance = counted / norm[source].clamp_min(torch.finfo(torch.float64).tiny)
    return Translations(source, target, chance)


def _links(
    pairs: Sequence[Pair], source_vocab: int, target_vocab: int
) -> tuple[Int[Tensor, " M"], Int[Tensor, " M"]]:
    """Every (source word, target word) of every sentence as one number, and its target token."""
    keys, groups, seen = [], [], 0
    for at in range(0, len(pairs), CHUNK_PAIRS):
        chunk = [pair for pair in pairs[at : at + CHUNK_PAIRS] if len(pair[1])]
        if not chunk:
            continue
        source = _padded([[*source, source_vocab] for source, _ in chunk])
        target = _padded([list(target) for _, target in chunk])
        numbers = (target >= 0).flatten().cumsum(0).view_as(target) - 1 + seen
        linked = (target >= 0).unsqueeze(2) & (source >= 0).unsqueeze(1)
        key = source.unsqueeze(1) * target_vocab + target.unsqueeze(2)
        keys.append(key[linked])
        groups.append(numbers.unsqueeze(2).expand_as(key)[linked])
        seen = int(numbers.flatten()[-1]) + 1
    if not keys:
        return torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
    return torch.cat(keys), torch.cat(groups)


def _padded(rows: list[list[int]]) -> Int[Tensor, "N W"]:
    wide = max(len(row) for row in rows)
    return torch.tensor([row + [-1] * (wide - len(row)) for row in rows])


class Lexicon(nn.Module):
    """L_F: for each source word its `keep` likeliest translations, and the rest as UNK."""

    ids: Tensor
    chances: Tensor

    def __init__(self, sizes: OutputSizes, keep: int) -> None:
        super().__init__()
        self.sizes = sizes
        self.keep = keep
        self.register_buffer("ids", torch.full((sizes.source_vocab, keep + 1), sizes.unk))
        self.register_buffer("chances", torch.zeros(sizes.source_vocab, keep + 1))
        self._close()

    def fit(self, pairs: Sequence[Pair], rounds: int) -> None:
        """Estimate the table on pairs of ids; extra ids of a target count as UNK."""
        special = {self.sizes.bos, self.sizes.eos, self.sizes.unk}
        vocab = self.sizes.vocab
        words = [
            (
                [f for f in source if f not in special],
                [e for e in target if e not in special and e < vocab],
            )
            for source, target in pairs
        ]
        found = ibm_model_1(words, self.sizes.source_vocab, self.sizes.vocab, rounds)
        order = found.chance.argsort(descending=True, stable=True)
        order = order[found.source[order].argsort(stable=True)]
        source, chance = found.source[order], found.chance[order]
        first = torch.searchsorted(source, source)
        rank = torch.arange(len(source)) - first
        kept = (rank < self.keep) & (source < self.sizes.source_vocab)
        place = (source[kept], rank[kept])
        ids, chances = torch.full_like(self.ids, self.sizes.unk), torch.zeros_like(self.chances)
        ids[place] = found.target[order][kept].to(ids.device)
        chances[place] = chance[kept].to(chances)
        self.ids.copy_(ids)
        self.chances.copy_(chances)
        self._close()

    def _close(self) -> None:
        """Give UNK what is left of each word, and special words themselves."""
        self.ids[:, -1] = self.sizes.unk
        self.chances[:, -1] = 0
        self.chances[:, -1] = (1 - self.chances.sum(1)).clamp_min(0)
        self.chances[0] = 0
        for word in (self.sizes.bos, self.sizes.eos, self.sizes.unk):
            self.ids[word] = word
            self.chances[word] = 0
            self.chances[word, 0] = 1

    def forward(
        self, weights: Float[Tensor, "B T S"], tokens: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B T V"]:
        """p_lex = L_F a_t, by scattering the few translations of the words of each sentence."""
        ids, parts = self._parts(weights, tokens)
        zeros = torch.zeros(
            (*weights.shape[:2], self.sizes.vocab), dtype=parts.dtype, device=parts.device
        )
        return zeros.scatter_add(2, ids.unsqueeze(1).expand_as(parts), parts)

    def at(
        self,
        weights: Float[Tensor, "B T S"],
        tokens: Int[Tensor, "B S"],
        words: Int[Tensor, "B T"],
    ) -> Float[Tensor, "B T"]:
        """The same for one word a step."""
        ids, parts = self._parts(weights, tokens)
        return torch.where(ids.unsqueeze(1) == words.unsqueeze(-1), parts, 0.0).sum(-1)

    def oracle(
        self, weights: Float[Tensor, " S"], tokens: Int[Tensor, " S"]
    ) -> list[Float[Tensor, ""]]:
        """`forward` for one step of one example, translation by translation."""
        found = [torch.zeros_like(weights[0])] * self.sizes.vocab
        for weight, token in zip(weights, tokens.tolist(), strict=True):
            for word, chance in zip(
                self.ids[token].tolist(), self.chances[token].tolist(), strict=True
            ):
                found[word] = found[word] + weight * chance
        return found

    def _parts(
        self, weights: Float[Tensor, "B T S"], tokens: Int[Tensor, "B S"]
    ) -> tuple[Int[Tensor, "B P"], Float[Tensor, "B T P"]]:
        """Translations of every position, and how much of each step's probability they carry."""
        chances = self.chances.to(weights.dtype)[tokens]
        parts = (weights.unsqueeze(-1) * chances.unsqueeze(1)).flatten(2)
        return self.ids[tokens].flatten(1), parts
