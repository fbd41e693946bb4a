"""The words of a batch as a network embeds them, for probes that differentiate by them."""

from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import Float, Int
from torch import Tensor, nn

from bench.api.batch import Batch
from bench.api.errors import Refused
from bench.api.probe import Subject


class EmbeddedWords:
    """The first embedding of some words that a network computes, as a leaf of its graph."""

    def __init__(self, tokens: Int[Tensor, "B S"]) -> None:
        """Wait for the embedding.

        Args:
            tokens: The words.
        """
        self._tokens = tokens
        self._leaf: Tensor | None = None

    def keep(self, module: nn.Module, given: tuple[Tensor, ...], found: Tensor) -> Tensor | None:
        """Put the leaf in the place of the embedding; a forward hook."""
        tokens = given[0]
        if self._leaf is not None or tokens.shape != self._tokens.shape:
            return None
        if not bool((tokens == self._tokens).all()):
            return None
        self._leaf = found.detach().requires_grad_()
        return self._leaf

    @property
    def leaf(self) -> Float[Tensor, "B S E"]:
        """The embedded words, once the network has run.

        Raises:
            Refused: It embeds no such words.
        """
        if self._leaf is None:
            raise Refused("this network does not embed the words of the source.")
        return self._leaf


@contextmanager
def embedded_words(subject: Subject, batch: Batch) -> Iterator[EmbeddedWords]:
    """Watch what a network embeds inside the block.

    Args:
        subject: The network.
        batch: Of its first source the words are meant, or of its inputs where it has none.
    """
    words = EmbeddedWords(batch.sources[0].tokens if batch.sources else batch.inputs)
    tables = [m for m in subject.backbone.modules() if isinstance(m, nn.Embedding)]
    hooks = [module.register_forward_hook(words.keep) for module in tables]
    try:
        yield words
    finally:
        for hook in hooks:
            hook.remove()
