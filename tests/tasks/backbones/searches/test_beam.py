"""Beam search against enumeration, against greedy search, and on decoders made by hand."""

import math
from dataclasses import dataclass, replace
from itertools import product

import pytest
import torch

from bench.api.backbone import Generated
from bench.api.batch import Batch, Sizes, Text
from bench.api.call import Attended
from bench.api.config import NoOptions, build_config
from bench.api.errors import InvalidConfig
from bench.api.registry import find
from bench.api.search import Said, Search
from bench.api.selector import parse
from bench.api.source import Memory, Source, State
from bench.api.trace import Mode, Trace
from tasks.backbones.searches.beam import coverage_penalty, length_penalty

BOS, EOS, UNK = 1, 2, 3
SIZES = Sizes((6,), 6, 8)
RNN = "rnn_seq2seq[hidden=16,embedding=8,decoder={}]"
TRANSFORMER = "transformer_seq2seq[width=16,heads=2,layers=2{}]"


@dataclass(frozen=True)
class Scripted:
    """A decoder that thinks what a function of row and words so far says it thinks."""

    think: object
    """(row, words) -> (log probabilities, weights)."""
    source: torch.Tensor
    real: torch.Tensor
    heard: tuple[tuple[int, tuple[int, ...]], ...]
    """Row and words so far."""

    def step(self, words):
        heard = tuple(
            (row, (*before, word))
            for (row, before), word in zip(self.heard, words[:, 0].tolist(), strict=True)
        )
        thoughts = [self.think(row, said[1:]) for row, said in heard]
        log_probs = torch.stack([found for found, _ in thoughts])
        weights = torch.stack([found for _, found in thoughts])[:, None, None]
        rows = torch.tensor([row for row, _ in heard])
        state = self.source[rows, None, :, None].double()
        memory = Memory(Source(state, state, self.real[rows]))
        blank = torch.zeros(len(rows), 1, 1)
        attended = Attended(blank[:, None], weights, State(), {})
        trace = Trace(blank, blank, blank, (attended,), (memory,))
        return Said(log_probs, trace, replace(self, heard=heard))

    def repeat(self, times):
        return replace(self, heard=tuple(one for one in self.heard for _ in range(times)))

    def reorder(self, rows):
        return replace(self, heard=tuple(self.heard[row] for row in rows.tolist()))


def thoughts(seed, vocab=6, keys=3, sharp=2.0):
    """A fixed random language: every beginning has its own next words and its own attention."""

    def think(row, words):
        rng = torch.Generator().manual_seed(hash((seed, row, words)) % 2**31)
        logits = sharp * torch.randn(vocab, generator=rng, dtype=torch.float64)
        logits[[0, BOS]] = -math.inf
        energy = torch.randn(keys, generator=rng, dtype=torch.float64)
        return torch.log_softmax(logits, 0), torch.softmax(2 * energy, 0)

    return think


def search(selector, think, *, rows=1, longest=4, keys=3, lengths=None, tokens=None):
    chosen = parse(selector)
    found = find("search", chosen.name)
    made = found.target(build_config(found.config, chosen.options, chosen.name), SIZES)
    source = torch.full((rows, keys), 5) if tokens is None else torch.tensor(tokens)
    real = torch.arange(keys) < torch.tensor([keys] * rows if lengths is None else lengths)[:, None]
    blank = torch.zeros(rows, 1, dtype=torch.int64)
    batch = Batch((Text(source, real),), blank, blank, blank.bool(), extended=source)
    walk = Scripted(think, source, real, tuple((row, ()) for row in range(rows)))
    return made.decode(walk, batch, longest)


def worth(think, row, words, *, alpha=0.0, beta=0.0, keys=3):
    """Score of a whole sentence, EOS included, by the definition."""
    total, covered = 0.0, [0.0] * keys
    for t, word in enumerate((*words, EOS)):
        log_probs, weights = think(row, words[:t])
        total += log_probs[word].item()
        covered = [c + w for c, w in zip(covered, weights.tolist(), strict=True)]
    paid = sum(math.log(min(c, 1.0)) for c in covered)
    return total / ((5 + len(words) + 1) / 6) ** alpha + beta * paid


def best_sentence(think, row, longest, **penalties):
    """The best of all sentences that end in time, by enumeration."""
    every = [words for length in range(longest) for words in product((UNK, 4, 5), repeat=length)]
    return max((worth(think, row, words, **penalties), words) for words in every)


PENALTIES = [(0.0, 0.0), (0.6, 0.0), (1.0, 0.0), (0.0, 0.3), (0.6, 0.2), (1.3, 1.0)]


@pytest.mark.parametrize(("alpha", "beta"), PENALTIES)
def test_a_beam_as_wide_as_the_language_finds_the_best_of_all_sentences(alpha, beta):
    selector = f"beam[width=81,length_penalty={alpha},coverage_penalty={beta}]"
    lengths = set()
    for seed in range(12):
        think = thoughts(seed)
        found = search(selector, think, rows=2)
        for row in range(2):
            score, words = best_sentence(think, row, 4, alpha=alpha, beta=beta)
            assert found.tokens[row] == words
            assert found.scores[row] == pytest.approx(score, abs=1e-12)
            lengths.add(len(words))
    assert len(lengths) > 2, "sentences of one length show nothing"


@pytest.mark.parametrize(("alpha", "beta"), [(0.6, 0.0), (0.6, 0.3)])
def test_scores_are_those_of_the_sentences_also_in_a_narrow_beam(alpha, beta):
    selector = f"beam[width=3,length_penalty={alpha},coverage_penalty={beta}]"
    ended = 0
    for seed in range(12):
        think = thoughts(seed)
        found = search(selector, think, rows=2, longest=9)
        for row in range(2):
            if len(found.tokens[row]) < 9:
                ended += 1
                score = worth(think, row, found.tokens[row], alpha=alpha, beta=beta)
                assert found.scores[row] == pytest.approx(score, abs=1e-12)
    assert ended > 12


def test_a_beam_of_one_is_greedy_search():
    said = set()
    for seed in range(40):
        think = thoughts(seed)
        for penalties in ("length_penalty=0.0", "length_penalty=1.0,coverage_penalty=0.5"):
            one = search(f"beam[width=1,{penalties}]", think, rows=3, longest=7)
            greedy = search("greedy", think, rows=3, longest=7)
            assert one.tokens == greedy.tokens
            said |= set(greedy.tokens)
    assert len({len(words) for words in said}) > 3
    assert max(map(len, said)) == 7, "some rows must run to the end of their budget"


def test_a_wider_beam_finds_likelier_sentences():
    """Not each time: a beam may lose the greedy path; but the more the wider."""
    means = []
    for width in (1, 2, 4, 16):
        total = 0.0
        for seed in range(30):
            found = search(f"beam[width={width},length_penalty=0.0]", thoughts(seed), longest=8)
            total += found.scores[0]
        means.append(total / 30)
    assert means == sorted(means)
    assert means[-1] > means[0] + 0.1


def test_rows_do_not_see_each_other():
    for seed in range(6):
        think = thoughts(seed)
        together = search("beam[width=3,coverage_penalty=0.2]", think, rows=4, longest=7)
        for row in range(4):
            alone = search(
                "beam[width=3,coverage_penalty=0.2]",
                lambda _, words, row=row, think=think: think(row, words),
                longest=7,
            )
            assert alone.tokens[0] == together.tokens[row]
            assert alone.scores[0] == together.scores[row]


def test_an_early_end_waits_for_better_ones_and_stays_as_it_was():
    """EOS now is likelier than any longer sentence until length is forgiven."""

    def think(row, words):
        probability = torch.zeros(6, dtype=torch.float64)
        if not words:
            probability[[EOS, 4]] = torch.tensor([0.6, 0.4]).double()
        elif len(words) < 5:
            probability[[4, 5]] = torch.tensor([0.95, 0.05]).double()
        else:
            probability[EOS] = 1
        return probability.log(), torch.full((3,), 1 / 3, dtype=torch.float64)

    short = search("beam[width=2,length_penalty=0.0]", think, longest=8)
    assert short.tokens == ((),)
    assert short.scores[0] == pytest.approx(math.log(0.6))
    assert short.steps == 1, "nothing can become likelier than what has ended"
    forgiving = search("beam[width=2,length_penalty=1.5]", think, longest=8)
    assert forgiving.tokens == ((4, 4, 4, 4, 4),)
    expected = (math.log(0.4) + 4 * math.log(0.95)) / (11 / 6) ** 1.5
    assert forgiving.scores[0] == pytest.approx(expected)


def test_a_row_ends_with_as_many_sentences_as_its_beam_is_wide():
    def think(row, words):
        probability = torch.tensor([0, 0, 0.55, 0, 0.45, 0]).double()
        return probability.log(), torch.full((3,), 1 / 3).double()

    for width, steps in ((1, 1), (2, 2), (3, 3)):
        found = search(f"beam[width={width},length_penalty=1.5]", think, longest=8)
        assert found.steps == steps
        assert found.tokens == ((),)


def test_a_row_in_which_nothing_ends_says_its_best_beginning():
    def think(row, words):
        probability = torch.tensor([0, 0, 0, 0, 0.3, 0.7]).double()
        return probability.log(), torch.full((3,), 1 / 3).double()

    found = search("beam[width=3,length_penalty=1.0]", think, longest=3)
    assert found.tokens == ((5, 5, 5),)
    assert found.scores[0] == pytest.approx(3 * math.log(0.7) / (8 / 6))
    assert found.steps == 3


def test_golden_coverage_penalty_and_length_penalty():
    coverage = torch.tensor([[[1.4, 0.6, 1.0, 0.0]]]).double()
    real = torch.tensor([[[True, True, True, False]]])
    assert coverage_penalty(coverage, real).item() == pytest.approx(-0.510826, abs=1e-6)
    assert coverage_penalty(coverage, real | True).isfinite()
    assert length_penalty(1, 0.7) == 1
    assert length_penalty(7, 0.0) == 1
    assert length_penalty(7, 1.0) == 2
    assert length_penalty(19, 0.5) == 2


def test_the_coverage_penalty_prefers_the_sentence_that_reads_all_of_its_source():
    """Word 4 looks at both real keys in turn, word 5 twice at the first; padding owes nothing."""

    def think(row, words):
        probability = torch.zeros(6, dtype=torch.float64)
        weights = torch.tensor([1.0, 0.0, 0.0]).double()
        if not words:
            probability[[4, 5]] = torch.tensor([0.4, 0.6]).double()
        else:
            probability[EOS] = 1
            if words[0] == 4:
                weights = torch.tensor([0.0, 1.0, 0.0]).double()
        return probability.log(), weights

    plain = search("beam[width=2,coverage_penalty=0.0]", think, lengths=[2])
    paid = search("beam[width=2,coverage_penalty=0.2]", think, lengths=[2])
    assert plain.tokens == ((5,),)
    assert paid.tokens == ((4,),)
    assert paid.scores[0] == pytest.approx(math.log(0.4) / (7 / 6) ** 0.6)


@pytest.mark.parametrize("selector", ["greedy[replace_unk=true]", "beam[replace_unk=true,width=2]"])
def test_unknown_words_become_the_source_words_that_were_looked_at(selector):
    tokens = [[17, 4, 23, EOS], [18, EOS, 0, 0]]

    def think(row, words):
        place = len(words)
        word = (UNK, 5, UNK, EOS)[place]
        probability = torch.full((6,), 0.01, dtype=torch.float64)
        probability[word] = 0.95
        weights = torch.full((4,), 0.1, dtype=torch.float64)
        weights[place] = 0.7
        return probability.log(), weights

    found = search(selector, think, rows=2, longest=6, keys=4, lengths=[4, 2], tokens=tokens)
    # the second row looks at EOS and at padding, which are no words: the only word is taken
    assert found.tokens == ((17, 5, 23), (18, 5, 18))
    assert found.heard == ((UNK, 5, UNK),) * 2
    plain = search(selector.replace("true", "false"), think, rows=2, longest=6, keys=4)
    assert plain.tokens == ((UNK, 5, UNK),) * 2
    assert plain.heard is None


def test_replaced_words_follow_their_sentence_when_beams_change_places():
    """The second-best first word wins later; its own attention must have come with it."""

    def think(row, words):
        probability = torch.full((6,), 1e-9, dtype=torch.float64)
        weights = torch.tensor([0.8, 0.1, 0.1]).double()
        if not words:
            probability[[4, UNK]] = torch.tensor([0.6, 0.4]).double()
        elif words == (UNK,):
            probability[UNK] = 1
            weights = torch.tensor([0.1, 0.1, 0.8]).double()
        elif words == (4,):
            probability[[4, 5, EOS]] = torch.tensor([0.4, 0.3, 0.3]).double()
            weights = torch.tensor([0.1, 0.8, 0.1]).double()
        else:
            probability[EOS] = 1
        return probability.log(), weights

    found = search(
        "beam[width=3,length_penalty=0.0,replace_unk=true]", think, tokens=[[11, 12, 13]]
    )
    assert found.tokens == ((11, 13),)
    assert found.heard == ((UNK, UNK),)


PLACES = [
    ("additive", RNN.format("bahdanau"), ""),
    ("additive", RNN.format("luong[input_feeding=true]"), ""),
    ("tu_coverage", RNN.format("luong"), ""),
    ("mi_coverage", RNN.format("luong"), ""),
    ("additive", RNN.format("none_input"), ""),
    ("additive", RNN.format("luong[cell=lstm,layers=2],source_order=reversed"), ""),
    ("additive", RNN.format("lstmn[fusion=deep]"), ""),
    ("additive", RNN.format("las[layers=1],encoder=pyramid[layers=1]"), ""),
    ("additive", RNN.format("gated"), ""),
    ("scaled_dot", TRANSFORMER.format(""), "cross"),
    ("cohn_structural", TRANSFORMER.format(""), "cross"),
    ("linear_attention", TRANSFORMER.format(",short_convolution=3"), "causal"),
    ("shaw_rpr", TRANSFORMER.format(""), "causal"),
    ("scaled_dot", TRANSFORMER.format(""), "self"),
]


def with_search(backbone, text):
    return f"{backbone[:-1]},search={text}]"


def sharpen(backbone):
    """Words that move the state, and some ends."""
    with torch.no_grad():
        backbone.project.weight.mul_(3)
        backbone.project.bias[:2] -= 100
        backbone.target_embedding.weight.mul_(3)


def likelihood(backbone, batch, said):
    """Log likelihood of each row's words and EOS under teacher forcing."""
    width = max(len(row) for row in said) + 1
    targets = torch.zeros(len(said), width, dtype=torch.int64)
    mask = torch.zeros(len(said), width, dtype=torch.bool)
    for row, words in enumerate(said):
        targets[row, : len(words) + 1] = torch.tensor([*words, EOS])
        mask[row, : len(words) + 1] = True
    vocab = backbone.sizes.target_vocab
    known = torch.where(targets < vocab, targets, UNK)
    inputs = torch.cat((torch.full((len(said), 1), BOS), known[:, :-1]), 1)
    fed = replace(batch, inputs=inputs, targets=targets, mask=mask, gold=None)
    trace = backbone(fed, Mode())
    return -backbone.output.nll(trace, backbone.emit, fed).sum(1)


@pytest.mark.parametrize(("variant", "name", "slot"), PLACES)
def test_paths_are_reordered_whole_in_every_network(variant, name, slot, built):
    """Scores are those of teacher forcing, so no state was left in another sentence's place."""
    longest, compared = 9, set()
    for seed in range(12):
        wide = with_search(name, "beam[width=4,length_penalty=0.0]")
        backbone, _, batch = built(variant, backbone=wide, slot=slot, rows=6, seed=seed)
        sharpen(backbone)
        with torch.no_grad():
            found = backbone.generate(batch, longest, Mode())
            forced = likelihood(backbone, batch, found.tokens).tolist()
        for words, score, expected in zip(found.tokens, found.scores, forced, strict=True):
            if len(words) < longest:
                assert score == pytest.approx(expected, abs=1e-9)
                compared.add(words)
        if len(compared) > 3 and max(map(len, compared)) > 2:
            return
    pytest.fail(f"short sentences show nothing: {sorted(compared)}")


class Hold(Search):
    """Keeps the walk that it is given."""

    def decode(self, walk, batch, max_length):
        self.walk = walk
        return Generated(())


@pytest.mark.parametrize(("variant", "name", "slot"), PLACES)
def test_reordered_rows_go_on_as_if_they_had_said_the_others_words(variant, name, slot, built):
    backbone, _, batch = built(variant, backbone=name, slot=slot, rows=3)
    backbone.search = Hold(NoOptions(), backbone.sizes)
    with torch.no_grad():
        backbone.generate(batch, 9, Mode())
        rng = torch.Generator().manual_seed(0)
        heard = torch.randint(4, backbone.sizes.target_vocab, (4, 6, 1), generator=rng)
        order = torch.tensor([1, 0, 2, 2, 5, 4])

        def after(words, order=None):
            walk = backbone.search.walk.repeat(2)
            for word in words:
                walk = walk.step(word).walk
            walk = walk if order is None else walk.reorder(order)
            return walk.step(heard[0]).log_probs

        straight, turned = after(heard), after(heard, order)
        torch.testing.assert_close(turned, after(heard[:, order]), rtol=0, atol=1e-12)
    changed = (straight - turned).abs().amax(1) > 1e-6
    assert changed.tolist() == [True, True, False, True, True, True]


@pytest.mark.parametrize(("variant", "name", "slot"), PLACES)
def test_a_beam_of_one_is_greedy_search_in_every_network(variant, name, slot, built):
    one, _, batch = built(variant, backbone=with_search(name, "beam[width=1]"), slot=slot, rows=6)
    greedy, _, _ = built(variant, backbone=name, slot=slot, rows=6)
    for network in (one, greedy):
        sharpen(network)
    greedy.load_state_dict(one.state_dict())
    assert one.generate(batch, 9, Mode()).tokens == greedy.generate(batch, 9, Mode()).tokens


def test_copied_words_are_searched_too(built):
    wide = "rnn_seq2seq[hidden=16,embedding=8,search=beam[width=4,length_penalty=0.0]]"
    backbone, task, batch = built(
        "pointer_generator", task="oov_copy[unknown=0.8]", backbone=wide, rows=8
    )
    with torch.no_grad():
        backbone.output.gate.bias.fill_(-4.0)  # nearly all mass goes to copies
        found = backbone.generate(batch, 12, Mode())
        assert any(word >= task.sizes.target_vocab for row in found.tokens for word in row)
        forced = likelihood(backbone, batch, found.tokens).tolist()
    ended = [row for row, words in enumerate(found.tokens) if len(words) < 12]
    assert ended
    for row in ended:
        assert found.scores[row] == pytest.approx(forced[row], abs=1e-9)


def test_width_and_penalties_are_checked():
    target = find("search", "beam").config
    for options in ({"width": 0}, {"length_penalty": -1.0}, {"coverage_penalty": -0.1}):
        with pytest.raises(InvalidConfig, match="beam: width must be at least 1"):
            target(**options)
