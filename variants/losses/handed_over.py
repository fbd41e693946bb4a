"""What a loss must be handed over in a training loop of one's own, and what is refused without it.

Backbones of the bench hand everything over, and what they lack is refused before training.
"""

from abc import abstractmethod
from typing import Literal, NamedTuple

from torch import Tensor

from bench.api.call import Attended
from bench.api.errors import Refused
from bench.api.loss import Loss, LossSizes
from bench.api.source import Memory

Asked = Literal["nll", "targets", "states", "values"]
"""The likelihood and the ids of targets, decoder states and inputs, and the values of keys."""


class AskingLoss(Loss):
    """A loss that reads more than weights and terms, under some of its options or always."""

    @abstractmethod
    def asks(self) -> frozenset[Asked]:
        """What else it reads under its options."""
        raise NotImplementedError


class Given(NamedTuple):
    """What was handed over, for checks."""

    attended: Attended
    """That of the first layer."""
    memory: Memory | None
    nll: Tensor | None
    targets: Tensor | None
    gold: Tensor | None
    states: Tensor | None
    embedded: Tensor | None


def refuse_building(loss: Loss, sizes: LossSizes) -> None:
    """Refuse a loss that no call could serve.

    Raises:
        Refused: It needs an encoder or several draws, or a width that was not given.
    """
    _refuse(_cannot_be_built(loss, sizes))


def refuse_call(loss: Loss, sizes: LossSizes, given: Given) -> None:
    """Refuse a call in which something is missing.

    Raises:
        Refused: It is; the sentence says what to hand over.
    """
    _refuse(_attention_missing(loss, given) or _batch_missing(loss, given))
    _refuse(_other_widths(loss, sizes, given))


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise Refused(reason)


def _cannot_be_built(loss: Loss, sizes: LossSizes) -> str | None:
    """Say why a loss cannot be computed here, whatever is handed over, or None."""
    if loss.terms_of_source:
        return (
            "this loss reads what an encoder says of its tokens, which nothing here hands over; "
            "train it by the bench, with encoder=rationale."
        )
    if loss.copies > 1:
        return (
            "this loss compares several draws of each example, and here each has one; take another "
            "baseline, such as moving_average or learned."
        )
    if "states" in _asks(loss) and not sizes.states + sizes.embedded:
        return (
            "this loss predicts from decoder states and inputs; give state_dim, word_dim or both, "
            "and hand over `states` and `embedded` of these widths."
        )
    if "values" in _asks(loss) and not sizes.source:
        return (
            "this loss predicts from the values of keys; give source_dim, their width, all heads "
            "together."
        )
    return None


def _attention_missing(loss: Loss, given: Given) -> str | None:
    """Say what the attention did not give, but for terms, which each loss looks for by itself."""
    if "weights" in loss.needs and given.attended.weights is None:
        return (
            "this loss needs weights, and `attended` has none; hand over what `attend` returned "
            "under want_weights=True, for a variant that gives weights."
        )
    if given.memory is None and "causal" in loss.unsupported:
        return (
            f"this loss needs a source: {loss.unsupported['causal']}; under cross attention hand "
            "over as `memory` what `prepare` returned."
        )
    if given.memory is None and "delays" in loss.needs:
        return (
            "this loss compares delays with the length of the source; hand over as `memory` what "
            "`prepare` returned."
        )
    return None


def _batch_missing(loss: Loss, given: Given) -> str | None:
    """Say what of the batch was not handed over, or None."""
    if "gold_alignment" in loss.needs and given.gold is None:
        return "this loss needs gold alignments; hand over `gold`, a row for each target."
    if "nll" in _asks(loss) and given.nll is None:
        return (
            "this loss rewards draws by the likelihood of the targets; hand over `nll`, the "
            "negative log likelihood of each target."
        )
    if "targets" in _asks(loss) and given.targets is None:
        return (
            "this loss must know which targets end a sentence; hand over `targets`, their ids, "
            "with 2 for the end."
        )
    return None


def _other_widths(loss: Loss, sizes: LossSizes, given: Given) -> str | None:
    """Say what is not as wide as it was said to be when the loss was built, or None."""
    if "states" in _asks(loss):
        return _other_width("states", given.states, "state_dim", sizes.states) or _other_width(
            "embedded", given.embedded, "word_dim", sizes.embedded
        )
    if "values" in _asks(loss) and given.memory is not None:
        values = given.memory.source.value.transpose(1, 2).flatten(2)
        return _other_width("memory", values, "source_dim", sizes.source)
    return None


def _other_width(name: str, x: Tensor | None, option: str, width: int) -> str | None:
    found = 0 if x is None else x.shape[2]
    if found == width:
        return None
    return (
        f"this loss was built with {option}={width}, and `{name}` has {found} numbers at each "
        "place; hand over as many as it was built for."
    )


def _asks(loss: Loss) -> frozenset[Asked]:
    return loss.asks() if isinstance(loss, AskingLoss) else frozenset()
