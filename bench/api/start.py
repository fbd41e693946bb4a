"""Where training starts: parameters that begin at a number of their paper."""

from collections.abc import Mapping
from types import MappingProxyType

from torch import Tensor, nn

NOWHERE: Mapping[str, float | Tensor] = MappingProxyType({})


class Starting(nn.Module):
    """A part whose parameters are drawn, or begin at numbers that it says here."""

    starts: Mapping[str, float | Tensor] = NOWHERE
    """What each parameter that is not drawn begins at, by its name: a number, or a tensor that
    broadcasts to it. A gate that starts closed, an offset and a bias of zeros stand here; the
    certificate compares them with a part that was just built."""
    starts_outside: str = ""
    """Why attention with this part may start outside of 0.3 to 1 of the uniform entropy, on states
    of variance 1 (ADR 19): one sentence, which the certificate prints. Empty where it may not."""
