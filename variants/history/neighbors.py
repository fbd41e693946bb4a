"""Numbers of a key and of its neighbors."""

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


def beside(x: Float[Tensor, "B H S"], reach: int) -> Float[Tensor, "B H S W"]:
    """Stack x[s - reach] ... x[s + reach] for every s, zeros beyond both ends."""
    return functional.pad(x, (reach, reach)).unfold(-1, 2 * reach + 1, 1)


def oracle_beside(x: list[Tensor], s: int, reach: int) -> list[Tensor]:
    """The same for one key of one row."""
    zero = x[0].new_zeros(())
    return [x[near] if 0 <= near < len(x) else zero for near in range(s - reach, s + reach + 1)]
