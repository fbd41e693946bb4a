"""One vector for a whole sequence: pooling with and without attention."""

from bench.api.registry import Citation, DefaultTask, Recipe, register_recipe

register_recipe(
    "last_state",
    Recipe(axes={"score": "uniform", "mask": "last_key"}, main="mask"),
    module=__name__,
    about="""
    Last state: the state of the last real token represents the whole sequence.

    Sutskever et al., 2014, "Sequence to sequence learning with neural networks",
    https://arxiv.org/abs/1409.3215, section 2. The mask `last_key` leaves one key, which gets all
    the weight whatever its score.

    Deviations: none.
    """,
    title="Last state",
    citation=Citation(
        text="Sutskever et al., 2014", url="https://arxiv.org/abs/1409.3215", where="section 2"
    ),
    cost=1.5,
    default_task=DefaultTask(task="after_marker", backbone="pooling[encoder=uni_rnn]"),
    does_not_show=(
        "Sutskever et al. claim no advantage over attention, which came later: one state is what "
        "attention replaced. In short texts it holds what is asked, and learns it a little later."
    ),
)

register_recipe(
    "mean_pooling",
    Recipe(axes={"score": "uniform"}, main="score"),
    module=__name__,
    about="""
    Mean pooling: the average of the states of all real tokens.

    Yang et al., 2016, "Hierarchical attention networks for document classification",
    https://aclanthology.org/N16-1174, table 2 (HN-AVE), the baseline of its attention. It is the
    uniform score under the name that text classification uses.

    Deviations: none.
    """,
    title="Mean pooling",
    citation=Citation(
        text="Yang et al., 2016", url="https://aclanthology.org/N16-1174", where="table 2"
    ),
    default_task=DefaultTask(task="after_marker", backbone="pooling[encoder=birnn]"),
    does_not_show=(
        "Yang et al. report it behind attention in table 2, so that no advantage is claimed. It is "
        "what attention is compared with."
    ),
)

register_recipe(
    "han",
    Recipe(axes={"score": "context_vector"}, main="score"),
    module=__name__,
    about="""
    Hierarchical attention: learned vectors are the only queries, over words and then over
    sentences.

    Yang et al., 2016, "Hierarchical attention networks for document classification",
    https://aclanthology.org/N16-1174, sections 2.2 and 2.3. The backbone `hierarchical` has the
    two levels.

    Deviations: those of the score `context_vector` and of the backbone `hierarchical`.
    """,
    title="Hierarchical attention (words, then sentences)",
    citation=Citation(
        text="Yang et al., 2016",
        url="https://aclanthology.org/N16-1174",
        where="sections 2.2 and 2.3",
    ),
    default_task=DefaultTask(task="hier_doc"),
    does_not_show=(
        "Yang et al. report 0.6 to 1.6 points of accuracy more than for means of words and of "
        "sentences, on six large sets of reviews and answers. Here its mean is higher, but the "
        "seeds do not decide the difference."
    ),
)

register_recipe(
    "seq2vec_attention",
    Recipe(axes={"score": "additive"}, main="score", fixes={"encoder": "uni_rnn"}),
    module=__name__,
    about="""
    Sequence to vector with attention: the last state of a recurrent network attends to all states.

    Rajkomar et al., 2018, "Scalable and accurate deep learning with electronic health records",
    https://arxiv.org/abs/1801.07860, supplement: recurrent states, attention, and a classifier.

    Deviations: this is our guess of what was meant, because the text that motivates this entry
    names no paper and shows no formula. The score is additive. Times between events are left out,
    because no task here has any. The recipe fixes the encoder; the default task sets the
    backbone's option `query=last`, which makes the last state the query.
    """,
    title="Last state attends to all states",
    citation=Citation(
        text="Rajkomar et al., 2018", url="https://arxiv.org/abs/1801.07860", where="supplement"
    ),
    default_task=DefaultTask(task="after_marker", backbone="pooling[encoder=uni_rnn,query=last]"),
)
