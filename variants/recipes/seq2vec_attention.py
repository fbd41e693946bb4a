"""Sequence to vector with attention: the last state of a recurrent network asks all its states.

Rajkomar et al., 2018, "Scalable and accurate deep learning with electronic health records",
https://arxiv.org/abs/1801.07860, supplement: recurrent states, attention, and a classifier.

Deviations: the reading is a guess, for the text that motivates this entry names no paper and shows
no formula; the score is additive; times between events are not part of it, for no task here has
any. The encoder is fixed; that the last state asks is the backbone's option `query=last`, which the
default task sets.
"""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "seq2vec_attention",
    Recipe(axes={"score": "additive"}, main="score", fixes={"encoder": "uni_rnn"}),
    module=__name__,
    title="Last state attends to all states",
    citation=Citation(
        text="Rajkomar et al., 2018", url="https://arxiv.org/abs/1801.07860", where="supplement"
    ),
    cost=5.0,
    default_task=DefaultTask(task="after_marker", backbone="pooling[encoder=uni_rnn,query=last]"),
)
