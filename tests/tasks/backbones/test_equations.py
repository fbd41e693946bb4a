"""Recurrent decoders, with one source and with two, against the published equations in loops.

Nothing of the network under test is called but its encoders and its parameters: cell, score,
softmax, context, output layer and projection are written out again, one example and one step at a
time.
"""

import pytest
import torch

from bench.api import registry
from bench.api.backbone import BackboneParts
from bench.api.batch import Batch, Sizes, Text
from bench.api.build import build_slot
from bench.api.errors import InvalidConfig, Refused
from bench.api.resolve import canonical_backbone, resolve
from bench.api.trace import Mode

HIDDEN, EMBEDDING, VOCAB = 6, 4, 9
DECODERS = (
    "bahdanau",
    "bahdanau[output_layer_state=curr]",
    "bahdanau[start=backward,maxout=3]",
    "luong",
    "luong[input_feeding=true]",
)


def network(decoder: str, source_vocabs: tuple[int, ...], variant: str, draw):
    """A backbone with a slot of its own for each source."""
    spec = resolve(variant)
    selector = canonical_backbone(
        f"rnn_seq2seq[hidden={HIDDEN},embedding={EMBEDDING},decoder={decoder}]", {}
    )
    capabilities = frozenset({"padding", "stepwise", "source_tokens"})
    parts = BackboneParts(
        sizes=Sizes(source_vocabs, VOCAB, 12),
        attach=lambda place: build_slot(spec, place),
        attach_default=lambda place: build_slot(spec, place),
        output=lambda sizes: registry.make("output", spec.axes["output"][0], sizes),
        capabilities=capabilities,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = registry.make("backbone", selector, parts).double()
    draw(made, 1)
    return made


def examples(source_vocabs: tuple[int, ...]) -> Batch:
    """Three rows of mixed lengths, padded on the right."""
    rng = torch.Generator().manual_seed(2)
    lengths = [(5, 2, 3), (2, 4, 1)][: len(source_vocabs)]
    texts = []
    for vocab, rows in zip(source_vocabs, lengths, strict=True):
        mask = torch.arange(max(rows)) < torch.tensor(rows)[:, None]
        tokens = torch.randint(4, vocab, (3, max(rows)), generator=rng)
        texts.append(Text(torch.where(mask, tokens, 0), mask))
    inputs = torch.randint(4, VOCAB, (3, 4), generator=rng)
    scored = torch.arange(4) < torch.tensor([4, 2, 3])[:, None]
    return Batch(tuple(texts), inputs, inputs.roll(-1, 1), scored, extended=texts[0].tokens)


def sigmoid(x):
    return 1 / (1 + torch.exp(-x))


def cell(weights, x, hidden):
    """A GRU step: reset, update, candidate."""
    of_input, of_hidden, input_bias, hidden_bias = weights
    a, b = of_input @ x + input_bias, of_hidden @ hidden + hidden_bias
    d = len(hidden)
    reset, update = sigmoid(a[:d] + b[:d]), sigmoid(a[d : 2 * d] + b[d : 2 * d])
    candidate = torch.tanh(a[2 * d :] + reset * b[2 * d :])
    return (1 - update) * candidate + update * hidden


def gru_weights(module):
    ends = "" if isinstance(module, torch.nn.GRUCell) else "_l0"
    return tuple(
        getattr(module, name + ends) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )


def ask(slot, query, states):
    """e_j = v . tanh(W q + U h_j + b), softmax, and the mean of the states under it."""
    score = slot.variant.score
    w, u, b, v = score.query_map[0], score.key_map[0], score.bias[0, 0], score.v[0, :, 0]
    energies = []
    for state in states:
        hidden = [torch.tanh(query @ w[:, i] + state @ u[:, i] + b[i]) for i in range(len(v))]
        energies.append(sum(v[i] * hidden[i] for i in range(len(v))))
    exps = [torch.exp(energy) for energy in energies]
    weights = [e / sum(exps) for e in exps]
    context = sum(weight * state for weight, state in zip(weights, states, strict=True))
    return context, torch.stack(weights)


def ask_all(decoder, query, sources):
    """Contexts of the sources side by side, and the weights on each."""
    answers = [
        ask(slot, query, states) for slot, states in zip(decoder.slots, sources, strict=True)
    ]
    return torch.cat([context for context, _ in answers]), [weights for _, weights in answers]


def affine(layer, x):
    found = torch.stack([row @ x for row in layer.weight])
    return found if layer.bias is None else found + layer.bias


def bahdanau(decoder, hidden, words, sources):
    """c_t asked by s_{t-1}; s_t = GRU([y; c], s_{t-1}); maxout over pairs of U s + V y + C c."""
    weights = gru_weights(decoder.cell)
    for word in words:
        context, seen = ask_all(decoder, hidden, sources)
        before, hidden = hidden, cell(weights, torch.cat((word, context)), hidden)
        shown = before if decoder.reads_previous else hidden
        joined = affine(decoder.of_state, shown) + affine(decoder.of_word, word)
        joined = joined + affine(decoder.of_context, context)
        pairs = [max(joined[2 * i], joined[2 * i + 1]) for i in range(len(joined) // 2)]
        yield shown, context, seen, torch.stack(pairs)


def luong(decoder, hidden, words, sources):
    """s_t = GRU(y, or [y; h~_{t-1}], s_{t-1}); c_t asked by s_t; h~ = tanh(W [c; s])."""
    weights = gru_weights(decoder.rnn)
    fed = torch.zeros_like(hidden)
    for word in words:
        given = torch.cat((word, fed)) if decoder.input_feeding else word
        hidden = cell(weights, given, hidden)
        context, seen = ask_all(decoder, hidden, sources)
        fed = torch.tanh(affine(decoder.out, torch.cat((context, hidden))))
        yield hidden, context, seen, fed


def none_state(decoder, hidden, words, summary):
    """s_t = GRU(y, s_{t-1}); the vocabulary is read off s_t."""
    weights = gru_weights(decoder.rnn)
    for word in words:
        hidden = cell(weights, word, hidden)
        yield hidden, hidden[:0], [], hidden


def none_input(decoder, hidden, words, summary):
    """s_t = GRU([y; m], s_{t-1}); tanh(W [s; m]) is read."""
    weights = gru_weights(decoder.rnn)
    for word in words:
        hidden = cell(weights, torch.cat((word, summary)), hidden)
        yield hidden, summary, [], torch.tanh(affine(decoder.out, torch.cat((hidden, summary))))


def walk(decoder, hidden, words, sources, summary):
    """The equations of this decoder."""
    if not decoder.attends:
        steps = none_input if hasattr(decoder, "out") else none_state
        return steps(decoder, hidden, words, summary)
    steps = bahdanau if hasattr(decoder, "cell") else luong
    return steps(decoder, hidden, words, sources)


def oracle(backbone, batch, row, name):
    """States, context, weights of each slot and log probabilities of one example."""
    decoder, sources, summary = backbone.decoder, [], []
    for index, text in enumerate(batch.sources):
        real = text.tokens[row][text.mask[row]]
        embedded = torch.stack([backbone.source_embeddings[index].weight[t] for t in real])
        states = backbone.encoders[index](embedded[None], None).states[0]
        sources.append(list(states))
        # the last state of each way: the end for the forward half, the start for the backward one
        half = HIDDEN // 2
        forward = [states[-1][:half]] if "start=backward" not in name else []
        summary += [*forward, states[0][half:]]
    joined = torch.cat(summary)
    hidden = torch.tanh(affine(decoder.start, joined))
    words = [backbone.target_embedding.weight[t] for t in batch.inputs[row]]
    found = []
    for states, context, weights, read in walk(decoder, hidden, words, sources, joined):
        scores = affine(backbone.project, read)
        log_total = torch.log(sum(torch.exp(score) for score in scores))
        found.append((states, context, weights, scores - log_total))
    return found


def compare(backbone, batch, near, name):
    trace = backbone(batch, Mode())
    said = torch.log_softmax(backbone.emit(trace.states, trace.context, trace.embedded), -1)
    nll = backbone.output.nll(trace, backbone.emit, batch)
    assert len(trace.attended) == (len(batch.sources) if backbone.decoder.attends else 0)
    for row in range(len(batch.inputs)):
        for t, (states, context, weights, logs) in enumerate(oracle(backbone, batch, row, name)):
            near(trace.states[row, t], states)
            near(trace.context[row, t], context)
            near(said[row, t], logs)
            for slot, expected in enumerate(weights):
                seen = trace.attended[slot].weights[row, 0, t]
                near(seen[: len(expected)], expected)
                assert not seen[len(expected) :].any()
            expected = -logs[batch.targets[row, t]] if batch.mask[row, t] else logs[0] * 0
            near(nll[row, t].double(), expected, 1e-5)


@pytest.mark.parametrize("decoder", DECODERS)
def test_one_source_equals_the_equations(decoder, draw, near):
    compare(network(decoder, (9,), "additive[width=5]", draw), examples((9,)), near, decoder)


@pytest.mark.parametrize("decoder", DECODERS)
def test_two_sources_equal_the_equations_with_contexts_side_by_side(decoder, draw, near):
    backbone = network(decoder, (9, 7), "additive[width=5]", draw)
    first, second = backbone.variant_slots()
    assert not {id(p) for p in first.parameters()} & {id(p) for p in second.parameters()}
    compare(backbone, examples((9, 7)), near, decoder)


@pytest.mark.parametrize("decoder", ["none_state", "none_input"])
@pytest.mark.parametrize("vocabs", [(9,), (9, 7)])
def test_without_attention_the_equations_read_the_summaries_alone(decoder, vocabs, draw, near):
    compare(network(decoder, vocabs, decoder, draw), examples(vocabs), near, decoder)


def said_with_other_states(backbone, batch, monkeypatch):
    """Log probabilities and decoded words, as they are and with all states but the summary new."""
    encode = backbone.encode
    rng = torch.Generator().manual_seed(5)

    def other(*arranged):
        found = []
        for source in encode(*arranged):
            noise = torch.randn(source.states.shape, generator=rng, dtype=source.states.dtype)
            found.append(source._replace(states=noise, mask=None))
        return tuple(found)

    found = []
    for read in (encode, other):
        monkeypatch.setattr(backbone, "encode", read)
        logs = backbone.output.log_probs(backbone(batch, Mode()), backbone.emit, batch)
        found.append((logs, backbone.generate(batch, 6, Mode()).tokens))
    return found


@pytest.mark.parametrize("decoder", ["none_state", "none_input", "none_state[cell=lstm,layers=2]"])
def test_a_decoder_without_attention_sees_the_summary_and_nothing_else(decoder, draw, monkeypatch):
    backbone, batch = network(decoder, (9,), decoder.partition("[")[0], draw), examples((9,))
    (logs, words), (again, words_again) = said_with_other_states(backbone, batch, monkeypatch)
    assert torch.equal(logs, again)
    assert words == words_again
    encode = backbone.encode
    monkeypatch.setattr(
        backbone, "encode", lambda *b: tuple(s._replace(summary=s.summary + 1) for s in encode(*b))
    )
    moved = backbone.output.log_probs(backbone(batch, Mode()), backbone.emit, batch)
    assert (moved - logs).abs().amax(-1).min() > 1e-3, "the summary must matter to every word"


def test_a_decoder_with_attention_sees_more_than_the_summary(draw, monkeypatch):
    backbone, batch = network("luong", (9,), "additive[width=5]", draw), examples((9,))
    (logs, _), (other, _) = said_with_other_states(backbone, batch, monkeypatch)
    assert (logs - other).abs().amax(-1).min() > 1e-3


@pytest.mark.parametrize("decoder", DECODERS)
def test_gradients_reach_both_sources_and_both_slots(decoder, draw):
    backbone = network(decoder, (9, 7), "additive[width=5]", draw)
    batch = examples((9, 7))
    trace = backbone(batch, Mode())
    backbone.output.nll(trace, backbone.emit, batch).sum().backward()
    for index in (0, 1):
        parts = {
            "embedding": backbone.source_embeddings[index],
            "encoder": backbone.encoders[index],
            "slot": backbone.variant_slots()[index],
        }
        for name, part in parts.items():
            for parameter in part.parameters():
                assert parameter.grad.abs().max() > 1e-6, f"{name} of source {index}"


def test_steps_of_a_two_source_decoder_equal_its_run(draw, near):
    for decoder in DECODERS:
        backbone = network(decoder, (9, 7), "tu_coverage", draw)
        batch = examples((9, 7))
        trace = backbone(batch, Mode())
        encoded = backbone.encode(batch, Mode())
        memories = backbone.decoder.prepare(encoded, batch)
        path = backbone.decoder.begin(torch.cat([e.summary for e in encoded], -1), memories)
        x = backbone.target_embedding(batch.inputs)
        for t in range(4):
            steps = backbone.decoder.step(x[:, t : t + 1], memories, path, Mode())
            path = steps.path
            near(steps.context[:, 0], trace.context[:, t])


def test_a_two_source_decoder_generates(draw):
    backbone = network("bahdanau", (9, 7), "additive[width=5]", draw)
    said = backbone.generate(examples((9, 7)), 6, Mode())
    assert len(said.tokens) == 3
    assert 1 <= said.steps <= 6


def test_a_decoder_starts_from_the_last_backward_state_or_is_refused(draw):
    places = (
        "uni_rnn",
        "embed",
        "cnn",
        "birnn[summary=mean]",
        "rationale[encoder=uni_rnn]",
        "birnn,summaries=child_sum",
        "birnn,summaries=none",
    )
    for place in places:
        name = f"bahdanau[start=backward],encoder={place}"
        with pytest.raises(Refused, match=r"needs the last state of .* backwards .*=basic"):
            network(name, (9,), "additive", draw)
    for place in ("birnn", "pyramid", "rationale[encoder=birnn]"):
        made = network(f"bahdanau[start=backward],encoder={place}", (9,), "additive", draw)
        assert made.decoder.start.in_features == HIDDEN // 2
    with pytest.raises(InvalidConfig, match="maxout must be at least 0, got -1"):
        network("bahdanau[maxout=-1]", (9,), "additive", draw)
