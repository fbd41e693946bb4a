"""No attention, source read backwards: the first words of both sides come close to each other.

Sutskever et al., 2014, "Sequence to sequence learning with neural networks",
https://arxiv.org/abs/1409.3215, section 3.3.

Deviations: those of the decoder `none_state`; one layer of GRU where the paper has four of LSTM.
The encoder is fixed because a bidirectional one has no far end of the source to bring nearer.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "source_reversal",
    Recipe(
        axes={},
        main="source_order",
        fixes={"encoder": "uni_rnn", "source_order": "reversed", "decoder": "none_state"},
    ),
    module=__name__,
    title="No attention, source read backwards",
    citation=Citation(
        text="Sutskever et al., 2014", url="https://arxiv.org/abs/1409.3215", where="section 3.3"
    ),
    cost=0.7,
    default_task=DefaultTask(task="transduction[rule=copy]"),
)
