"""What functions of a chain see of it, so that the chain may call them."""

from typing import Protocol

from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.history import History
from bench.api.inputs import Inputs
from bench.api.mask import Mask
from bench.api.normalizer import Normalizer
from bench.api.position import Position
from bench.api.readout import Readout
from bench.api.score import Score
from bench.api.shapes import Allowed


class ChainParts(Protocol):
    """The components of a chain and what follows from them; `Chain` says what each means."""

    dims: Dims
    score: Score
    mask: Mask
    normalizer: Normalizer
    readout: Readout
    positions: tuple[Position, ...]
    histories: tuple[History, ...]
    key_inputs: Inputs
    query_inputs: Inputs
    has_features: bool

    @property
    def adds_to_energies(self) -> bool:
        """Whether positions add to energies."""

    def window(self, call: Call) -> tuple[Allowed | None, Float[Tensor, "B Hq L S"] | None]:
        """Keys that may be attended to, and the log weight that the mask gives them afterwards."""
