"""Streaming search: what greedy search says under hard reading, from what has been read alone."""

from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.chain import Chain
from bench.api.errors import Refused
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.stream import attend_streaming
from bench.api.trace import Mode
from bench.training.evaluate import _heard

EOS, LONGEST, ROWS = 2, 9, 6
TASK = "transduction[rule=copy,min_length=1,max_length=7,beyond=8,vocab=6]"
RNN = "rnn_seq2seq[hidden=16,embedding=8,summaries=none,search=streaming,{}]"
ONLINE = "encoder=uni_rnn"


def streams(name):
    """Whether a variant gives the capability `stream` and none of its parts removes it away."""
    parts = [part for _, part in resolve(name).parts]
    gives, removes = ({*()}.union(*(getattr(p, f) for p in parts)) for f in ("gives", "removes"))
    return "stream" in gives - removes


STREAMING = sorted(name for name in registry.listed_variants() if streams(name))
PLACES = [
    *((name, ONLINE) for name in STREAMING),
    ("raffel_monotonic[end=last]", f"{ONLINE},decoder=bahdanau"),
    ("raffel_monotonic[head=multi[heads=2]]", f"{ONLINE},decoder=luong[input_feeding=true]"),
    ("raffel_monotonic[score=general]", f"{ONLINE},decoder=las[cell=gru,layers=2]"),
    ("raffel_monotonic", "encoder=embed[positions=sinusoid],decoder=gated"),
    ("raffel_monotonic", "encoder=feed_forward,decoder=lstmn"),
    ("mocha[window=4,end=last]", "encoder=uni_rnn[cell=lstm,layers=2]"),
    ("mocha[head=multi[heads=4],chunk=general]", f"{ONLINE},decoder=bahdanau"),
    ("milk[head=multi[heads=2],end=last]", "encoder=embed,decoder=luong[input_feeding=true]"),
    ("mma_h[head=multi[heads=4]]", f"{ONLINE},decoder=lstmn[fusion=deep]"),
    ("raffel_monotonic[output=neural_cache[window=3]]", ONLINE),
]
SEEDS = 6


def wander(network):
    """Let words matter to where heads stop; of several heads, let not one always read it all."""
    with torch.no_grad():
        for slot in network.variant_slots():
            for parameter in slot.parameters():
                parameter.mul_(3)
            offset = slot.variant.normalizer.offset
            offset.fill_(0.75 * len(offset) - 1.75)


@pytest.fixture
def drawn(built):
    """`drawn(variant, options, seed)` -> network and batch; heads move on and rows end apart."""

    def make(variant, options=ONLINE, seed=0, task=TASK):
        made = built(variant, task=task, backbone=RNN.format(options), seed=seed, rows=ROWS)
        network = made.backbone.eval()
        with torch.no_grad():
            wander(network)
            network.project.bias[EOS] += 1.5
        return network, network.arrange(made.batch)

    return make


def decode(network, batch, search="streaming"):
    network.search = registry.make("search", parse(search), network.sizes)
    with torch.no_grad():
        return network.generate(batch, LONGEST, Mode())


def lengths(batch):
    return batch.sources[0].mask.sum(1).tolist()


def delays(said, batch):
    """Source tokens read before each word of each row."""
    pairs = zip(said.read_shares, lengths(batch), strict=True)
    return [[round(share * length) for share in shares] for shares, length in pairs]


def compare(network, batch):
    """Greedy search under hard reading, and its weights, against streaming; returns what was said.

    The decoder hears the words of greedy search again and says how far its weights have gone.
    """
    said, wanted = decode(network, batch), decode(network, batch, "greedy")
    assert said.tokens == wanted.tokens
    assert said.steps == wanted.steps
    sizes = network.sizes._replace(max_length=LONGEST)
    with torch.no_grad():
        trace = network(_heard(batch, wanted, sizes), Mode(read="hard"))
    for row, shares in enumerate(said.read_shares):
        assert len(shares) == min(len(said.tokens[row]) + 1, LONGEST)
        assert trace.read_share[row, : len(shares)].tolist() == pytest.approx(shares)
    return said, trace


@pytest.mark.parametrize(("variant", "options"), PLACES)
def test_it_says_what_greedy_search_says_and_has_read_as_far_as_the_weights_go(
    variant, options, drawn
):
    ends, shares = set(), set()
    for seed in range(SEEDS):
        network, batch = drawn(variant, options, seed)
        said, trace = compare(network, batch)
        ends.add(len({len(words) for words in said.tokens}))
        shares |= {round(share, 3) for row in said.read_shares for share in row}
        weights = trace.attended[0].weights
        places = torch.arange(1, weights.shape[3] + 1)
        for row, read in enumerate(delays(said, batch)):
            reach = ((weights[row] > 0) * places).amax((0, 2))[: len(read)]
            assert (reach <= torch.tensor(read)).all(), "weight beyond what has been read"
    assert max(ends) > 1, "rows must end apart"
    assert len(shares) > 3, "walks that all stop alike show nothing"


def test_delays_are_the_places_of_the_weights(drawn):
    """One head that reads one key: the place of its weight, or the whole source without any."""
    stopped = over = 0
    for seed in range(SEEDS):
        network, batch = drawn("raffel_monotonic", ONLINE, seed)
        said, trace = compare(network, batch)
        for row, read in enumerate(delays(said, batch)):
            for t, delay in enumerate(read):
                at = trace.attended[0].weights[row, 0, t].nonzero().flatten().tolist()
                assert [delay] == ([s + 1 for s in at] or [lengths(batch)[row]])
                stopped, over = stopped + bool(at), over + (not at)
    assert min(stopped, over) > 20


def spoiled(network, batch, monkeypatch, limit, width=None):
    """Decode again with NaN in the states from place `limit[row]` on, `width` of them or all."""
    encode = type(network).encode

    def plant(self, given, mode):
        (found,) = encode(self, given, mode)
        place = torch.arange(found.states.shape[1])
        first = torch.tensor(limit)[:, None]
        there = place >= first
        if width is not None:
            there &= place < first + width
        return (found._replace(states=found.states.masked_fill(there[..., None], float("nan"))),)

    with monkeypatch.context() as patch:
        patch.setattr(type(network), "encode", plant)
        return decode(network, batch)


@pytest.mark.parametrize(("variant", "options"), PLACES)
def test_states_that_were_not_read_may_be_anything(variant, options, drawn, monkeypatch):
    unread = 0
    for seed in range(SEEDS):
        network, batch = drawn(variant, options, seed)
        said = decode(network, batch)
        read = delays(said, batch)
        unread += sum(max(row) < n for row, n in zip(read, lengths(batch), strict=True))
        for t in (0, 1, 2, LONGEST - 1):
            # up to word t, a row has read as much as its delay there says, and not a key more
            limit = [row[min(t, len(row) - 1)] for row in read]
            again = spoiled(network, batch, monkeypatch, limit)
            for row in range(ROWS):
                same = min(t + 1, len(read[row]))
                assert again.tokens[row][:same] == said.tokens[row][:same]
                assert again.read_shares[row][:same] == said.read_shares[row][:same]
    assert unread > 3, "where everything is read, nothing is shown"


def test_the_last_key_that_was_read_matters(drawn, monkeypatch):
    """A delay claims no key too many: with NaN at the last one the walk does not stop there."""
    tried = 0
    for seed in range(SEEDS):
        network, batch = drawn("raffel_monotonic", ONLINE, seed)
        read = delays(decode(network, batch), batch)
        last = [row[0] - 1 for row in read]
        again = delays(spoiled(network, batch, monkeypatch, last, width=1), batch)
        for row, length in enumerate(lengths(batch)):
            if read[row][0] < length:
                assert again[row][0] > read[row][0]
                tried += 1
    assert tried > 10


@pytest.mark.parametrize("variant", STREAMING)
def test_words_are_said_before_the_rest_of_the_source_is_there(variant, drawn):
    """The source is cut behind what was read for the first words, encoder and all."""
    tried = 0
    for seed in range(SEEDS):
        network, batch = drawn(variant, ONLINE, seed)
        said = decode(network, batch)
        for row, read in enumerate(delays(said, batch)):
            if read[0] == lengths(batch)[row]:
                continue
            early = sum(delay == read[0] for delay in read)
            text = batch.sources[0]
            begun = replace(
                batch.select(torch.tensor([row])),
                sources=(replace(text, tokens=text.tokens[row : row + 1, : read[0]], mask=None),),
                extended=None,
            )
            found = decode(network, begun)
            assert found.tokens[0][:early] == said.tokens[row][:early]
            tried += 1
    assert tried > 5


@pytest.fixture
def touches(monkeypatch):
    """Keys that every call of `stream` has scored, by row and head."""
    found = []
    stream = Chain.stream

    def count(self, query, memory, pointer):
        output, after, touched = stream(self, query, memory, pointer)
        found.append(touched)
        return output, after, touched

    monkeypatch.setattr(Chain, "stream", count)
    return found


@pytest.mark.parametrize(("variant", "options"), PLACES)
def test_a_head_scores_each_key_once_and_one_more_a_word_and_rows_that_ended_none(
    variant, options, drawn, touches
):
    fewer = 0
    for seed in range(SEEDS):
        network, batch = drawn(variant, options, seed)
        touches.clear()
        said = decode(network, batch)
        for t in range(said.steps):
            rows = [row for row, read in enumerate(said.read_shares) if len(read) > t]
            assert len(touches[t]) == len(rows), "a row that has ended is still there"
            fewer += len(rows) < ROWS
        for row, (read, length) in enumerate(zip(said.read_shares, lengths(batch), strict=True)):
            place = [
                sum(len(other) > t for other in said.read_shares[:row]) for t in range(len(read))
            ]
            scored = sum(touches[t][at] for t, at in enumerate(place))
            assert (scored <= length + len(read)).all()
            assert scored.max() >= round(read[-1] * length)
    assert fewer, "where all rows end together, nothing is shown"


@pytest.mark.parametrize("options", ["combiner=concat", "combiner=hierarchical"])
def test_each_of_two_sources_has_its_own_pointers(options, built):
    """The delay is that of the source that was read furthest."""
    shares = set()
    for seed in range(4):
        made = built(
            "raffel_monotonic[head=multi[heads=2]]",
            task="two_source",
            backbone=RNN.format(f"{ONLINE},{options}"),
            seed=seed,
        )
        network = made.backbone.eval()
        wander(network)
        said, _ = compare(network, network.arrange(made.batch))
        shares |= {share for row in said.read_shares for share in row}
    assert len(shares) > 2


def forgets(stream, query, memory, state):
    """A walk that begins at the first key for every word."""
    return attend_streaming(stream, query, memory, type(state)())


def shares_pointers(stream, query, memory, state):
    """All rows walk with the one that is furthest."""
    found = attend_streaming(stream, query, memory, state)
    pointer = found.state.carried["pointer"]
    carried = {"pointer": pointer.amax(0, keepdim=True).expand_as(pointer).contiguous()}
    return found._replace(state=replace(found.state, carried=carried))


def shares_heads(stream, query, memory, state):
    """All heads of a row walk with the one that is furthest."""
    found = attend_streaming(stream, query, memory, state)
    pointer = found.state.carried["pointer"]
    carried = {"pointer": pointer.amax(1, keepdim=True).expand_as(pointer).contiguous()}
    return found._replace(state=replace(found.state, carried=carried))


@pytest.mark.parametrize("defect", [forgets, shares_pointers, shares_heads])
@pytest.mark.parametrize("variant", STREAMING)
def test_planted_defects_of_the_pointer_are_found(variant, defect, drawn, monkeypatch):
    monkeypatch.setattr("bench.api.variant.attend_streaming", defect)
    if defect is shares_heads:
        variant = f"{variant}[head=multi[heads=4]]"
    found = 0
    for seed in range(SEEDS):
        network, batch = drawn(variant, ONLINE, seed)
        try:
            compare(network, batch)
        except AssertionError:
            found += 1
    assert found


def test_rows_that_are_reordered_take_their_pointers_along(drawn):
    network, batch = drawn("mocha[head=multi[heads=2]]", ONLINE, 1)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    said, turned = decode(network, batch), decode(network, batch.select(order))
    assert turned.tokens == tuple(said.tokens[row] for row in order.tolist())
    assert turned.read_shares == tuple(said.read_shares[row] for row in order.tolist())


def test_reading_as_a_stream_is_a_way_to_read_under_teacher_forcing_too(drawn):
    network, batch = drawn("milk", ONLINE, 2)
    with torch.no_grad():
        stream, hard = (network(batch, Mode(read=read)) for read in ("stream", "hard"))
    assert torch.allclose(stream.context, hard.context)
    assert torch.equal(stream.read_share, hard.read_share)
    assert stream.attended[0].weights is None


def test_weights_that_are_not_there_cannot_be_edited(drawn):
    network, batch = drawn("milk")
    with pytest.raises(Refused, match="no weights that could be edited"):
        network(batch, Mode(read="stream", edit=lambda weights, call: weights))


REFUSED = [
    ("additive", ONLINE, "streaming needs hard decoding in linear time, which nothing here gives"),
    ("raffel_monotonic", "encoder=birnn", "streaming needs an online encoder"),
    ("mocha", "encoder=cnn", "streaming needs an online encoder"),
    ("mocha", "encoder=transformer", "streaming needs an online encoder"),
    ("mocha", "encoder=pyramid", "streaming needs an online encoder"),
    ("milk", f"{ONLINE},source_order=reversed", "stands, which reversed removes"),
    ("milk", f"{ONLINE},combiner=flat,decoder=none_state", "needs attention, and none_state has"),
    (
        "raffel_monotonic",
        f"{ONLINE},decoder=none_input",
        "needs attention, and none_input has none",
    ),
    ("raffel_monotonic[score=conv_attention]", ONLINE, "needs a score that looks at one key"),
    ("raffel_monotonic[mask=luong_local_m]", ONLINE, "which luong_local_m removes"),
    ("raffel_monotonic[mask=luong_local_p]", ONLINE, "which luong_local_p removes"),
    ("raffel_monotonic[mask=last_key]", ONLINE, "which last_key removes"),
    ("raffel_monotonic[position=cohn_position]", ONLINE, "which cohn_position removes"),
    ("raffel_monotonic[history=tu_coverage]", ONLINE, "which tu_coverage removes"),
    ("raffel_monotonic[history=location_aware]", ONLINE, "which location_aware removes"),
    ("raffel_monotonic[readout=max]", ONLINE, "which max removes"),
    ("milk[output=copynet]", ONLINE, "key by key, and copynet looks at all of it"),
    ("milk[output=lexicon_bias]", ONLINE, "key by key, and lexicon_bias looks at all of it"),
]


@pytest.mark.parametrize(("variant", "options", "why"), REFUSED)
def test_what_cannot_stream_is_refused_in_a_sentence(variant, options, why, built):
    with pytest.raises(Refused, match=why) as refused:
        built(variant, task=TASK, backbone=RNN.format(options))
    sentence = str(refused.value)
    assert sentence.count("\n") == 0
    assert 20 < len(sentence) < 200
    assert sentence.endswith(".")


def test_a_decoder_that_starts_from_the_whole_source_does_not_stream(built):
    backbone = "rnn_seq2seq[hidden=16,embedding=8,encoder=uni_rnn,search=streaming]"
    with pytest.raises(Refused, match="without a summary of its source"):
        built("raffel_monotonic", task=TASK, backbone=backbone)


def test_networks_that_see_the_whole_source_do_not_stream(built):
    backbone = "transformer_seq2seq[width=16,heads=2,layers=1,search=streaming]"
    with pytest.raises(Refused, match="streaming needs an online encoder"):
        built("mma", task=TASK, backbone=backbone)


def test_the_fact_is_known_of_every_mechanism_that_walks():
    assert {"raffel_monotonic", "mocha", "milk", "mma", "mma_h"} <= set(STREAMING)
