"""Training without an end that is fixed before: until validations stop getting better."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor, nn

from bench.api.metric import Metric
from bench.training.evaluate import Evaluated
from bench.training.protocol import AdamProtocol


@dataclass
class Patience:
    """The best validation up to now, the last of equal ones, and how many came since it was better.

    After `patience` validations without a better one the learning rate is halved. After `halvings`
    of these, training ends. The weights of the best validation are those that are tested.
    """

    protocol: AdamProtocol
    waited: int = 0
    """Validations since a better one, or since the last halving."""
    halved: int = 0
    """How often the rate was halved."""
    step: int = 0
    """Updates before the best validation."""
    value: float | None = None
    """The watched metric there."""
    weights: dict[str, Tensor] = field(default_factory=dict)
    validated: Evaluated | None = None
    """The best validation, without its answers."""

    def __bool__(self) -> bool:
        """Whether the protocol asks for it."""
        return self.protocol.patience > 0

    @property
    def rate(self) -> float:
        """What the learning rate is multiplied by."""
        return 0.5**self.halved

    @property
    def over(self) -> bool:
        """Whether nothing has become better for as long as the protocol waits."""
        return bool(self) and self.waited >= self.protocol.patience

    def look(
        self,
        step: int,
        value: float | None,
        validated: Evaluated,
        model: nn.Module,
        watched: Metric,
    ) -> None:
        """Compare a validation with the best one.

        Args:
            step: Updates before it.
            value: The watched metric; None where the validation has none, which is never better.
            validated: All of its scores.
            model: What was validated; its weights are copied.
            watched: The metric that says what is better.
        """
        if not self:
            return
        better = value is not None and self._is_better(value, watched)
        if better or (value is not None and value == self.value):
            # of equal ones the last, which has learned more of what the metric does not see
            self.step, self.value = step, value
            self.weights = _copy(model.state_dict())
            self.validated = replace(validated, answers=())
        if better:
            self.waited = 0
            return
        self.waited += 1
        if self.over and self.halved < self.protocol.halvings:
            self.halved, self.waited = self.halved + 1, 0

    def restore(self, model: nn.Module) -> None:
        """Give a model the weights of the best validation."""
        if self.weights:
            model.load_state_dict(self.weights)

    def _is_better(self, value: float, watched: Metric) -> bool:
        if self.value is None:
            return True
        return value < self.value if watched.better == "lower" else value > self.value


def _copy(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: one.detach().clone() for name, one in weights.items()}
