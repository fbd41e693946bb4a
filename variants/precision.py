"""Number formats in which a computation is safe."""

import torch
from jaxtyping import Float
from torch import Tensor


def at_least_single(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Widen half precision to float32, in which sums of exponentials are safe; leave the rest."""
    return x.to(wide_format(x.dtype))


def wide_format(dtype: torch.dtype) -> torch.dtype:
    """The format of `at_least_single`, for what is made and not widened."""
    return torch.promote_types(dtype, torch.float32)
