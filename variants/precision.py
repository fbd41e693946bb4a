"""Number formats in which a computation is safe."""

from jaxtyping import Float
from torch import Tensor


def at_least_single(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Widen half precision to float32, in which sums of exponentials are safe; leave the rest."""
    return x.float() if x.element_size() < 4 else x
