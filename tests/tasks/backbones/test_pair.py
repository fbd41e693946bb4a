"""The pair network against the published equations in loops, and what they imply."""

import pytest
import torch

from bench.api.batch import Batch, Text
from bench.api.errors import Refused
from bench.api.resolve import resolve
from bench.api.trace import Mode
from bench.training.evaluate import evaluate

VOCAB, LABELS = 11, 3
LENGTHS = ((5, 2, 3), (2, 4, 1))
SMALL = "embedding=4,hidden=6"


def examples(lengths=LENGTHS) -> Batch:
    """Three pairs of mixed lengths, padded on the right with junk ids."""
    rng = torch.Generator().manual_seed(2)
    texts = []
    for rows in lengths:
        mask = torch.arange(max(rows)) < torch.tensor(rows)[:, None]
        texts.append(Text(torch.randint(1, VOCAB, mask.shape, generator=rng), mask))
    targets = torch.tensor([[0], [2], [1]])
    return Batch(tuple(texts), torch.ones_like(targets), targets, torch.ones_like(targets).bool())


def said(network, batch) -> torch.Tensor:
    trace = network(batch, Mode())
    return network.emit(trace.states, trace.context, trace.embedded)[:, 0]


def layer(module, x):
    return torch.stack([row @ x for row in module.weight]) + module.bias


def two_layers(module, x):
    for index in (1, 4):
        x = layer(module[index], x).clamp(min=0)
    return x


def perceptron(score, x):
    for weight, bias in ((score.first, score.first_bias), (score.second, score.second_bias)):
        x = (x @ weight[0] + bias[0, 0]).clamp(min=0)
    return x


def soft(energies, values):
    exps = [torch.exp(e - max(energies)) for e in energies]
    return sum((e / sum(exps)) * v for e, v in zip(exps, values, strict=True))


def oracle(network, batch, row):
    """Attend, compare, aggregate, one token at a time."""
    texts = []
    for text in batch.sources:
        words = [network.embedding.weight[t] for t in text.tokens[row][text.mask[row]]]
        words = [network.null, *words] if network.null is not None else words
        states = [network.to_states.weight @ word for word in words]
        if network.intra is not None:
            score = network.intra.variant.score
            (bias,) = network.intra.variant.positions
            after = []
            for i, state in enumerate(states):
                energies = []
                for j, other in enumerate(states):
                    clipped = max(-11, min(11, i - j))
                    energy = perceptron(score, state) @ perceptron(score, other)
                    energies.append(energy + bias.table[0, clipped + 11])
                after.append(torch.cat((state, soft(energies, states))))
            states = after
        texts.append(states)
    sums = []
    score = network.cross.variant.score
    for one, two in (texts, texts[::-1]):
        total = 0
        for state in one:
            energies = [perceptron(score, state) @ perceptron(score, other) for other in two]
            total = total + two_layers(network.compare, torch.cat((state, soft(energies, two))))
        sums.append(total)
    joined = torch.cat(sums)
    return joined, layer(network.project, two_layers(network.aggregate, joined))


@pytest.mark.parametrize("options", ["", ",null=false", ",intra=true", ",intra=true,null=false"])
def test_the_network_equals_the_equations(options, placed, near):
    network = placed(f"pair[{SMALL}{options}]", "decomposable[width=5]", (VOCAB, VOCAB), LABELS)
    batch = examples()
    trace = network(batch, Mode())
    logits = said(network, batch)
    for row in range(3):
        sums, expected = oracle(network, batch, row)
        near(trace.states[row, 0], sums)
        near(logits[row], expected)


def shuffled(text: Text) -> Text:
    tokens = text.tokens.clone()
    for row, mask in enumerate(text.mask):
        words = tokens[row][mask]
        tokens[row, : len(words)] = words.flip(0)
    return Text(tokens, text.mask)


@pytest.mark.parametrize("variant", ["decomposable[width=5]", "additive[width=5]", "scaled_dot"])
def test_the_order_of_words_does_not_matter_without_intra_and_does_with_it(variant, placed, near):
    batch = examples()
    other = Batch(
        tuple(shuffled(t) for t in batch.sources), batch.inputs, batch.targets, batch.mask
    )
    network = placed(f"pair[{SMALL}]", variant, (VOCAB, VOCAB), LABELS)
    near(said(network, batch), said(network, other))
    for options in (",intra=true", ",encoder=birnn"):
        network = placed(f"pair[{SMALL}{options}]", variant, (VOCAB, VOCAB), LABELS)
        gap = network(batch, Mode()).states - network(other, Mode()).states
        assert gap.abs().max() > 1e-4


@pytest.mark.parametrize("intra", ["false", "true"])
def test_swapping_the_texts_swaps_the_two_sums(intra, placed, near):
    network = placed(f"pair[{SMALL},intra={intra}]", "additive", (VOCAB, VOCAB), LABELS)
    batch = examples()
    turned = Batch(batch.sources[::-1], batch.inputs, batch.targets, batch.mask)
    one, two = network(batch, Mode()), network(turned, Mode())
    near(one.states, torch.cat(two.states.chunk(2, -1)[::-1], -1))
    near(one.attended[0].weights, two.attended[1].weights)
    assert (said(network, batch) - said(network, turned)).abs().max() > 1e-4, "H sees the order"


@pytest.mark.parametrize("options", ["", ",intra=true", ",encoder=birnn", ",null=false"])
def test_a_pair_in_a_batch_is_the_pair_alone(options, placed, alone, near):
    network = placed(f"pair[{SMALL}{options}]", "tu_coverage", (VOCAB, VOCAB), LABELS)
    batch = examples()
    whole = said(network, batch)
    for row in range(3):
        near(whole[row], said(network, alone(batch, row))[0])


def test_a_text_without_words_is_its_null_token_or_nothing(placed):
    batch = examples(((3, 0, 2), (2, 1, 0)))
    for null in ("true", "false"):
        network = placed(f"pair[{SMALL},null={null}]", "decomposable", (VOCAB, VOCAB), LABELS)
        trace = network(batch, Mode())
        logits = said(network, batch)
        assert logits.isfinite().all()
        logits.sum().backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())
        assert (trace.states[1, 0, :6].abs().sum() > 0) == (null == "true")


def test_the_variant_stands_in_the_slot_it_was_given(placed):
    cross = placed(f"pair[{SMALL},intra=true]", "additive", (VOCAB, VOCAB), LABELS)
    assert type(cross.cross.variant.score).__name__ == "AdditiveScore"
    assert type(cross.intra.variant.score).__name__ == "DecomposableScore"
    assert cross.intra.variant.positions
    own = placed(f"pair[{SMALL},intra=true]", "additive", (VOCAB, VOCAB), LABELS, slot="self")
    assert type(own.cross.variant.score).__name__ == "DecomposableScore"
    assert type(own.intra.variant.score).__name__ == "AdditiveScore"
    for network, slot in ((cross, cross.cross), (own, own.intra)):
        assert network.variant_slots() == (slot,)
        trace = network(examples(), Mode())
        assert len(trace.attended) == 2
        assert trace.attended[0].weights.shape[2] == 6, "five words and NULL"


def test_gradients_reach_every_parameter(placed):
    network = placed(f"pair[{SMALL},intra=true]", "additive", (VOCAB, VOCAB), LABELS)
    batch = examples()
    trace = network(batch, Mode())
    network.output.nll(trace, network.emit, batch).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def accuracy(network) -> float:
    """Share of pairs told right after some training: do two texts have a word in common?"""
    rng = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)

    def batch(rows: int) -> Batch:
        texts = [torch.randint(1, VOCAB, (rows, 3), generator=rng) for _ in range(2)]
        shared = (texts[0][:, :, None] == texts[1][:, None]).flatten(1).any(1, keepdim=True)
        label = shared.long()
        told = torch.ones_like(shared)
        return Batch(tuple(Text(text, None) for text in texts), label, label, told)

    for _ in range(300):
        drawn = batch(64)
        trace = network(drawn, Mode())
        optimizer.zero_grad()
        network.output.nll(trace, network.emit, drawn).mean().backward()
        optimizer.step()
    test = batch(500)
    with torch.no_grad():
        return float((said(network, test).argmax(-1) == test.targets[:, 0]).double().mean())


@pytest.mark.slow
def test_it_learns_to_compare_and_without_alignment_learns_less(placed):
    found = {
        variant: accuracy(
            placed("pair[embedding=16,hidden=16]", variant, (VOCAB, VOCAB), 2).float()
        )
        for variant in ("decomposable[width=16]", "uniform")
    }
    assert found["decomposable[width=16]"] > 0.9
    assert found["decomposable[width=16]"] > found["uniform"] + 0.1


def test_weights_over_the_other_text_are_not_shown_as_an_alignment(placed):
    class Pairs:
        needs_predictions, decodes = True, False

        def evaluation(self, split):
            return [examples()]

        def scores(self, split, answers):
            return []

    network = placed(f"pair[{SMALL}]", "decomposable", (VOCAB, VOCAB), LABELS)
    found = evaluate(Pairs(), network, "test", torch.device("cpu"), lambda: 0.0)
    assert found.answers[0].weights is None
    assert found.answers[0].predicted.shape == (3, 1)


def test_impossible_pairs_are_refused(placed):
    for vocabs in ((VOCAB,), (VOCAB, VOCAB + 1), (VOCAB,) * 3):
        with pytest.raises(Refused, match="two texts of one vocabulary"):
            placed(f"pair[{SMALL}]", "decomposable", vocabs, LABELS)
    with pytest.raises(Refused, match="add intra=true"):
        placed(f"pair[{SMALL}]", "additive", (VOCAB, VOCAB), LABELS, slot="self")
    network = placed(f"pair[{SMALL}]", "decomposable", (VOCAB, VOCAB), LABELS)
    batch = examples()
    several = Batch(batch.sources, batch.inputs, batch.targets.expand(-1, 2), batch.mask)
    with pytest.raises(Refused, match="one label per pair"):
        network(several, Mode())


def test_encoders_without_a_state_of_every_word_are_refused(placed):
    sizes = ("decomposable", (VOCAB, VOCAB), LABELS)
    with pytest.raises(Refused, match="every word, and pyramid has one for 8 words"):
        placed(f"pair[{SMALL},encoder=pyramid]", *sizes)
    with pytest.raises(Refused, match="every word, and rationale selects some"):
        placed(f"pair[{SMALL},encoder=rationale]", *sizes)


def test_what_the_backbone_names_resolves():
    from tasks.backbones.pair import ATTEND, INTRA

    for name in (ATTEND, INTRA):
        assert resolve(name).axes["score"][0].name == "decomposable"
