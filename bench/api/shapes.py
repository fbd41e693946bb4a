"""Shapes of the contract, in PyTorch's own letters.

B batch, Hq query heads, Hk key heads, Hv value heads, L queries, S keys, Eq/Ek/Ev widths (Eq != Ek
is legal), D model width, De embedding width, T target length, V vocabulary, X extra (copied) ids,
VX both, F features.
"""

from jaxtyping import Bool, Float
from torch import Tensor

Query = Float[Tensor, "B Hq L Eq"]
Key = Float[Tensor, "B Hk S Ek"]
Value = Float[Tensor, "B Hv S Ev"]
Energy = Float[Tensor, "B Hq L S"]
Weights = Float[Tensor, "B Hq L S"]
Mixed = Float[Tensor, "B Hq L Ev"]
Allowed = Bool[Tensor, "#B #Hq #L S"]
Features = Float[Tensor, "B #Hq #L S F"]
