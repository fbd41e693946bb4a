"""Code in Git repositories: a decoder, a programmer and an encoder around their attention."""

from types import SimpleNamespace

import torch
from torch import nn

from bench.api import registry
from bench.api.build import SlotPlace, build_slot
from bench.api.decoder import DECODERS, DecoderSizes
from bench.api.encoder import Encoded
from bench.api.loading import load_package
from bench.api.resolve import resolve
from bench.api.trace import Mode
from tests.peers.agreement import attend, below_heads, copy_weights, draw_parameters, drawn
from tests.peers.repositories import GNMT, taken, tie

HEADS, LENGTH, WIDTH = 3, 12, 4
DIM = HEADS * WIDTH
PLACES = f"{LENGTH} places"


def test_a_deep_decoder_that_asks_with_its_lowest_layer_is_gnmt(agree):
    """It asks with the state of the word that is read, so its queries are moved by one word."""
    name, layers, source = "NVIDIA/DeepLearningExamples", 4, 7
    decoder = taken(
        name,
        f"{GNMT}/decoder.py",
        "RecurrentAttention ResidualRecurrentDecoder",
        BahdanauAttention=taken(
            name, f"{GNMT}/attention.py", "BahdanauAttention"
        ).BahdanauAttention,
        Classifier=lambda *_: nn.Identity(),
        init_lstm_=lambda *_: None,
    ).ResidualRecurrentDecoder
    options = {"num_layers": layers, "dropout": 0.0, "batch_first": True}
    theirs = decoder(1, DIM, embedder=nn.Identity(), **options).double()
    draw_parameters(theirs)
    asked = theirs.att_rnn.attn
    asked.register_forward_pre_hook(lambda _, given: (one_later(given[0]), given[1]))

    for package in ("variants", "tasks"):
        load_package(package)
    chosen = f"gnmt[layers={layers},score=additive[width={DIM}]]"
    spec, place = resolve(chosen), {"regime": "cross", "head": "raw"}

    def attach(query, read):
        given = frozenset({"padding", "stepwise"})
        return build_slot(
            spec, SlotPlace(query_width=query, source_width=read, given=given, **place)
        )

    sizes = DecoderSizes(embedding=DIM, hidden=DIM, summary=1, sources=(DIM,))
    mine = registry.make(DECODERS, spec.fixes["decoder"], sizes, attach).double()
    nn.init.zeros_(mine.start.bias)
    (slot,) = mine.slots
    tie(slot.variant.score, "query_map", asked.linear_q.weight.mT[None])
    tie(slot.variant.score, "key_map", asked.linear_k.weight.mT[None])
    tie(slot.variant.score, "bias", asked.normalize_bias[None, None])
    along = asked.linear_att / asked.linear_att.norm() * asked.normalize_scalar
    tie(slot.variant.score, "v", along[None, :, None])
    both = zip((mine.lowest, *mine.upper), (theirs.att_rnn.rnn, *theirs.rnn_layers), strict=True)
    pairs = {
        f"{what} {at}": (weight, getattr(other, what))
        for at, (one, other) in enumerate(both)
        for what, weight in one.named_parameters()
    }
    copy_weights(dict(pairs.values()))

    words, states = drawn(2, LENGTH, DIM, seed=40), drawn(2, source, DIM, seed=41)
    lengths = torch.tensor([source, source - 2])
    mask = torch.arange(source) < lengths[:, None]
    batch = SimpleNamespace(extended=None)
    memories = mine.prepare((Encoded(states, mask, torch.zeros(2, 1)),), batch)
    begin = mine.begin(torch.zeros(2, 1, dtype=words.dtype), memories)
    found, *_ = theirs(words, (states, lengths, None))
    agree(
        chosen,
        name,
        f"decoder of {layers} layers, {PLACES}, gradients of its LSTMs and of its attention",
        mine.run(words, memories, begin, Mode()).states,
        found,
        inputs={
            "words": words,
            "states": states,
            **pairs,
            **dict(asked.named_parameters()),
        },
        note="it asks with the state after a word; here it asks with the one before, as in the "
        "paper",
    )


def one_later(states):
    """States of the word before."""
    return torch.cat((torch.zeros_like(states[:, :1]), states[:, :-1]), 1)


def test_selecting_operations_and_columns_is_that_of_another_neural_programmer(agree):
    """It keeps two vectors of each operation, the paper has one; without biases they are tied."""
    name, steps = "timoderbeste/neural_programmer_iclr2016_implementation", 3
    numbers = {"operation": 7, "column": 4}
    select = taken(name, "src/models/selector.py", "Selector").Selector(DIM, *numbers.values())
    remember = taken(name, "src/models/history_rnn.py", "HistoryRNN").HistoryRNN(
        DIM, *numbers.values()
    )
    for seed, layer in enumerate((select.double(), remember.double())):
        draw_parameters(layer, seed=10 * seed)
    mine = below_heads("neural_programmer", heads=1, width=DIM, regime="cross")
    for which in numbers:
        key, value = getattr(select, f"hidden2{which}"), getattr(remember, f"{which}2hidden")
        nn.init.zeros_(key.bias)
        nn.init.zeros_(value.bias)
        tie(value, "weight", key.weight.mT)

    question, rows = drawn(2, DIM, seed=40), []
    for one in question:
        history = torch.zeros_like(one)
        for _ in range(steps):
            history = remember(*select(one, history), history)
        rows.append(history)
    past = torch.zeros_like(question)
    for _ in range(steps):
        joined, read = torch.cat((question, past), -1), []
        for which in numbers:
            query = getattr(select, f"input2{which}_hidden")(joined).tanh()[:, None, None]
            known = getattr(select, f"hidden2{which}").weight.expand(2, 1, -1, -1)
            read.append(attend(mine, query, known, known)[:, 0, 0])
        past = remember.hidden2hidden(torch.cat((*read, past), -1)).tanh()
    agree(
        "neural_programmer",
        name,
        f"histories of {steps} steps that select among 7 operations and 4 columns",
        past,
        torch.stack(rows),
        inputs={
            "question": question,
            "operations": select.hidden2operation.weight,
            "columns": select.hidden2column.weight,
            "asked": select.input2operation_hidden.weight,
        },
        note="without its biases, and with one vector for each operation, where it has two",
    )


def test_untied_positions_are_those_of_tupe(agree):
    """Its first token is a symbol that is untied, too: it is padding here, and answers nothing."""
    name, dim, vocab = "guolinke/TUPE", HEADS * WIDTH, 20
    attention = taken(
        name,
        "fairseq/modules/multihead_attention.py",
        "multi_head_attention_forward MultiheadAttention",
    ).MultiheadAttention

    class Layer(nn.Module):
        """Its attention without what follows it."""

        def __init__(self, *, embedding_dim, num_attention_heads, attn_scale_factor, **_):
            super().__init__()
            self.attention = attention(
                embedding_dim, num_attention_heads, scale_factor=attn_scale_factor
            )

        def forward(self, x, *, self_attn_padding_mask, self_attn_bias):
            hidden = {"key_padding_mask": self_attn_padding_mask, "attn_bias": self_attn_bias}
            return self.attention(x, x, x, **hidden)[0]

    theirs = taken(
        name,
        "fairseq/modules/transformer_sentence_encoder.py",
        "TransformerSentenceEncoder",
        LayerNorm=lambda width, export: nn.LayerNorm(width),
        TransformerSentenceEncoderLayer=Layer,
    ).TransformerSentenceEncoder(0, vocab, 1, dim, num_attention_heads=HEADS, max_seq_len=LENGTH)
    theirs = theirs.double().eval()
    draw_parameters(theirs)
    for map_ in (theirs.pos_q_linear, theirs.pos_k_linear):
        nn.init.zeros_(map_.bias)
    inner = theirs.layers[0].attention
    nn.init.eye_(inner.out_proj.weight)
    nn.init.zeros_(inner.out_proj.bias)

    mine = below_heads(f"tupe[max_length={LENGTH}]", heads=HEADS, width=WIDTH, regime="self")
    (position,) = mine.positions
    tie(position, "table", theirs.pos_ln(theirs.pos.weight[1:]))
    for which, map_ in (("to_query", theirs.pos_q_linear), ("to_key", theirs.pos_k_linear)):
        tie(position, which, map_.weight.unflatten(0, (HEADS, WIDTH)).mT)
    tokens = torch.arange(2 * LENGTH).view(2, LENGTH) % (vocab - 1) + 1
    tokens[:, 0] = theirs.padding_idx
    real = tokens != theirs.padding_idx
    x = theirs.embed_tokens(tokens) * real[..., None]
    mapped = nn.functional.linear(x, inner.in_proj_weight, inner.in_proj_bias)
    parts = [one.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for one in mapped.chunk(3, -1)]
    found = attend(mine, *parts, mask=real).transpose(1, 2).flatten(2)
    (_, states), _ = theirs(tokens)
    agree(
        f"tupe[max_length={LENGTH}]",
        name,
        f"encoder of one attention, {LENGTH - 1} places, gradients of words, places and maps",
        found[:, 1:],
        states.transpose(0, 1)[:, 1:],
        inputs={
            "words": theirs.embed_tokens.weight,
            "places": theirs.pos.weight,
            "place queries": theirs.pos_q_linear.weight,
            "place keys": theirs.pos_k_linear.weight,
            "maps": inner.in_proj_weight,
        },
        note="its first token, which is untied as well, is hidden; its norm of places is in our "
        "table",
    )
