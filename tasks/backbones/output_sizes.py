"""The widths that a network tells its output, beside the words of the task."""

from bench.api.batch import Sizes
from bench.api.output import OutputSizes


def output_sizes(
    sizes: Sizes, *, states: int, context: int, embedded: int, source: int = 0
) -> OutputSizes:
    """Widths of a network that says words of the task.

    Args:
        sizes: Of the task: vocabularies and special words.
        states: Width of what predicts a word.
        context: Width of what attention adds to it; 0 for nothing.
        embedded: Width of decoder inputs.
        source: Width of the states of the first source; 0 where outputs may not read it.
    """
    return OutputSizes(
        vocab=sizes.target_vocab,
        states=states,
        context=context,
        embedded=embedded,
        unk=sizes.unk,
        source=source,
        source_vocab=sizes.source_vocabs[0] if source else 0,
        bos=sizes.bos,
        eos=sizes.eos,
    )
