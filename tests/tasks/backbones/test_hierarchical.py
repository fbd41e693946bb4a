"""The two-level classifier: importances of tokens, empty sentences, one sentence, order."""

import pytest
import torch

from bench.api.batch import Batch, Text
from bench.api.errors import Refused
from bench.api.noise import Noise
from bench.api.trace import Mode
from tasks.backbones.sentences import split_sentences

VOCAB, LABELS = 13, 3
SMALL = "hierarchical[embedding=5,hidden=6]"
DOCUMENTS = (
    ([5, 6, 7], [8, 9], [10, 11, 12, 4]),
    ([4, 5], [6]),
    ([7, 7, 8, 9, 3],),
)


def documents(*rows, pad: int = 0) -> Batch:
    length = max(sum(len(s) for s in row) for row in rows) + pad
    tokens = torch.ones(len(rows), length, dtype=torch.long)
    segments = torch.zeros_like(tokens)
    mask = torch.zeros_like(tokens, dtype=torch.bool)
    for index, row in enumerate(rows):
        words = [word for sentence in row for word in sentence]
        tokens[index, : len(words)] = torch.tensor(words)
        numbers = [n for n, sentence in enumerate(row) for _ in sentence]
        segments[index, : len(words)] = torch.tensor(numbers)
        mask[index, : len(words)] = True
    told = torch.zeros(len(rows), 1, dtype=torch.long)
    text = Text(tokens, mask, segments)
    return Batch((text,), told, told, torch.ones_like(told).bool(), extended=tokens)


def said(network, batch) -> torch.Tensor:
    trace = network(batch, Mode())
    return network.emit(trace.states, trace.context, trace.embedded)[:, 0]


def ask(slot, query, states):
    """Score, softmax and mean of one pooling, in loops: additive, or a context vector."""
    score = slot.variant.score
    energies = []
    for state in states:
        hidden = state @ score.key_map[0] + score.bias[0, 0]
        if hasattr(score, "context"):
            energies.append(torch.tanh(hidden) @ score.context[0, :, 0])
        else:
            hidden = hidden + query @ score.query_map[0]
            energies.append(torch.tanh(hidden) @ score.v[0, :, 0])
    exps = [torch.exp(e) for e in energies]
    weights = [e / sum(exps) for e in exps]
    return sum(w * s for w, s in zip(weights, states, strict=True)), weights


def oracle(network, row):
    """Word level, then sentence level, one unpadded document."""
    vectors, within = [], []
    for sentence in row:
        words = torch.stack([network.embedding.weight[word] for word in sentence])
        states = network.words.encoder(words[None], None).states[0]
        vector, weights = ask(network.words.slot, network.words.query, list(states))
        vectors.append(vector)
        within.append(weights)
    states = network.sentences.encoder(torch.stack(vectors)[None], None).states[0]
    level = network.sentences
    document, among = ask(level.slot, level.query, list(states))
    importance = [a * w for a, words in zip(among, within, strict=True) for w in words]
    return document, torch.stack(importance)


@pytest.mark.parametrize("variant", ["han[width=5]", "additive[width=5]"])
def test_both_levels_equal_the_equations_and_importances_sum_to_one(variant, placed, near):
    network = placed(SMALL, variant, (VOCAB,), LABELS)
    batch = documents(*DOCUMENTS, pad=2)
    trace = network(batch, Mode())
    assert trace.weights.shape == (3, 1, 11)
    for index, row in enumerate(DOCUMENTS):
        document, importance = oracle(network, row)
        near(trace.context[index, 0], document)
        near(trace.weights[index, 0, : len(importance)], importance)
        near(trace.weights[index, 0].sum(), torch.ones((), dtype=torch.float64))
        assert not trace.weights[index, 0, len(importance) :].any()
        expected = network.project(document)
        near(said(network, batch)[index], expected)


@pytest.mark.parametrize("encoder", ["birnn", "uni_rnn", "embed"])
@pytest.mark.parametrize("variant", ["additive", "nadaraya_watson", "conv_attention"])
def test_a_document_in_a_batch_is_the_document_alone(variant, encoder, placed, near):
    network = placed(
        f"hierarchical[embedding=5,hidden=6,encoder={encoder}]", variant, (VOCAB,), LABELS
    )
    together = said(network, documents(*DOCUMENTS, pad=3))
    for index, row in enumerate(DOCUMENTS):
        near(together[index], said(network, documents(row))[0])


def test_an_empty_sentence_is_no_sentence_and_an_empty_document_is_zero(placed, near):
    network = placed(SMALL, "additive", (VOCAB,), LABELS)
    whole = documents(([5, 6], [7]), ([5, 6], [], [7]), ())
    trace = network(whole, Mode())
    near(trace.context[0], trace.context[1])
    assert not trace.context[2].any()
    assert not trace.weights[2].any()
    trace.context.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())


def test_one_sentence_is_flat_attention(placed, near):
    """Its weights are those of the words, and the document's vector passes the sentence encoder."""
    network = placed(SMALL, "additive", (VOCAB,), LABELS)
    batch = documents(([5, 6, 7, 8],))
    text = batch.sources[0]
    flat = Batch((Text(text.tokens, None),), batch.inputs, batch.targets, batch.mask)
    near(network(batch, Mode()).weights, network(flat, Mode()).weights)
    pooled, attended, _ = network.words(network.embedding(text.tokens), None, None, Mode())
    near(network(batch, Mode()).weights, attended.weights[:, 0])
    near(network(batch, Mode()).context, network.sentences.encoder(pooled, None).states)


@pytest.mark.parametrize(("encoder", "same"), [("embed", True), ("birnn", False)])
def test_the_order_of_sentences_matters_to_the_sentence_encoder_alone(encoder, same, placed):
    network = placed(
        f"hierarchical[embedding=6,hidden=6,encoder={encoder}]", "additive", (VOCAB,), LABELS
    )
    row = DOCUMENTS[0]
    one, two = said(network, documents(row)), said(network, documents(row[::-1]))
    gap = float((one - two).detach().abs().max())
    assert (gap < 1e-12) == same
    assert same or gap > 1e-4


def test_the_variant_stands_on_both_levels_or_on_the_one_that_was_named(placed):
    for slot, words, sentences in (
        ("", "AdditiveScore", "AdditiveScore"),
        ("pool", "AdditiveScore", "AdditiveScore"),
        ("word", "AdditiveScore", "ScaledDotScore"),
        ("sentence", "ScaledDotScore", "AdditiveScore"),
    ):
        network = placed(SMALL, "additive", (VOCAB,), LABELS, slot=slot)
        levels = (network.words, network.sentences)
        names = tuple(type(level.slot.variant.score).__name__ for level in levels)
        assert names == (words, sentences)
        held = [level.slot for level, name in zip(levels, names, strict=True) if name[0] == "A"]
        assert list(network.variant_slots()) == held
        assert network(documents(*DOCUMENTS), Mode()).weights.shape == (3, 1, 9)


def test_the_harness_fills_the_other_level_with_plain_attention(built):
    for slot in ("word", "sentence"):
        network, _, batch = built(
            "additive", task="after_marker[length=6]", backbone=SMALL, slot=slot
        )
        assert network(batch, Mode()).weights.shape == (4, 1, 6)


def test_gradients_reach_every_parameter(placed):
    network = placed(SMALL, "additive", (VOCAB,), LABELS)
    batch = documents(*DOCUMENTS)
    trace = network(batch, Mode())
    network.output.nll(trace, network.emit, batch).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_terms_of_real_sentences_add_up_over_both_levels(placed, near):
    network = placed(SMALL, "hard_reinforce[sampling=1.0]", (VOCAB,), LABELS)
    mode = Mode(read="train", noise=Noise(3))
    batch = documents(*DOCUMENTS)
    trace = network(batch, mode)
    log_prob = trace.attended[0].terms["log_prob"]
    assert log_prob.shape == (3, 1)
    folded = split_sentences(batch.sources[0])
    x = network.embedding(folded.tokens).flatten(0, 1)
    _, within, _ = network.words(x, folded.mask.flatten(0, 1), None, mode)
    words = within.terms["log_prob"].view(3, 3)
    for index, row in enumerate(DOCUMENTS):
        assert len(trace.weights[index, 0].nonzero()) == 1, "one token of one sentence"
        real = words[index, : len(row)].sum()
        assert log_prob[index] <= real, "the draw of a sentence has a probability too"
    # there is one sentence to draw, so that only its words count
    near(log_prob[2, 0], words[2, 0])
    assert log_prob[0] < words[0].sum()


def test_levels_do_not_share_their_draws(placed):
    network = placed(SMALL, "hard_reinforce", (VOCAB,), LABELS)
    mode = Mode(read="train", noise=Noise(3))
    seeds = [network._mode(level, mode).noise.seed for level in ("word", "sentence")]
    assert seeds[0] == 3
    assert seeds[1] != 3


def test_tasks_that_ask_for_several_words_are_refused(placed):
    network = placed(SMALL, "additive", (VOCAB,), LABELS)
    batch = documents(*DOCUMENTS)
    several = Batch(batch.sources, batch.inputs, batch.targets.expand(-1, 2), batch.mask)
    with pytest.raises(Refused, match="one answer per document"):
        network(several, Mode())


def test_variants_that_cannot_pool_or_need_ids_of_sentences_are_refused(placed):
    with pytest.raises(Refused, match="pooling"):
        placed(SMALL, "shaw_rpr", (VOCAB,), LABELS)


def test_encoders_without_a_state_of_every_word_are_refused(placed):
    name = SMALL.replace("]", ",encoder={}]")
    with pytest.raises(Refused, match="every word, and pyramid has one for 2 words"):
        placed(name.format("pyramid[layers=1]"), "additive", (VOCAB,), LABELS)
    with pytest.raises(Refused, match="every word, and rationale selects some"):
        placed(name.format("rationale"), "additive", (VOCAB,), LABELS)


def test_weights_of_tokens_that_were_made_from_sentences_cannot_be_edited(placed):
    edited = Mode(edit=lambda weights, call: weights)
    with pytest.raises(Refused, match="reads sentences"):
        placed(SMALL, "additive", (VOCAB,), LABELS)(documents(*DOCUMENTS), edited)
