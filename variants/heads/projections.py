"""Linear maps to queries, keys and values, which most heads share."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.component import Heads
from bench.api.source import Source


def oracle_linear(layer: nn.Linear, x: Float[Tensor, " D"]) -> list[Float[Tensor, ""]]:
    """A linear map of one vector, as a list of numbers."""
    numbers = layer.weight @ x
    return list(numbers if layer.bias is None else numbers + layer.bias)


class ProjectedHeads(Heads):
    """Projects a query, a key and a value for each head; a subclass says how heads are merged."""

    def project(self, dims: Dims, source_width: int, *, bias: bool) -> None:
        """Make the three maps; a subclass calls this while it is built."""
        self.dims = dims
        self.to_query = nn.Linear(dims.model_width, dims.heads * dims.query_width, bias=bias)
        self.to_key = nn.Linear(source_width, dims.heads * dims.key_width, bias=bias)
        self.to_value = nn.Linear(source_width, dims.heads * dims.value_width, bias=bias)

    def query(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B H L Eq"]:
        """Project and split."""
        return self._split(self.to_query(x))

    def source(
        self,
        x: Float[Tensor, "B S Dk"],
        mask: Bool[Tensor, "B S"] | None,
        tokens: Int[Tensor, "B S"] | None,
    ) -> Source:
        """Project keys and values and split."""
        key, value = self._split(self.to_key(x)), self._split(self.to_value(x))
        return Source(key=key, value=value, mask=mask, tokens=tokens)

    def oracle_query(self, x: Float[Tensor, " D"]) -> Float[Tensor, "H Eq"]:
        """One vector, head by head."""
        return self._oracle_split(self.to_query, x)

    def oracle_source(
        self, x: Float[Tensor, " Dk"]
    ) -> tuple[Float[Tensor, "H Ek"], Float[Tensor, "H Ev"]]:
        """One vector, head by head."""
        return self._oracle_split(self.to_key, x), self._oracle_split(self.to_value, x)

    def _oracle_split(self, layer: nn.Linear, x: Float[Tensor, " D"]) -> Float[Tensor, "H E"]:
        numbers = oracle_linear(layer, x)
        width = len(numbers) // self.dims.heads
        heads = [numbers[h * width : (h + 1) * width] for h in range(self.dims.heads)]
        return torch.stack([torch.stack(head) for head in heads])

    def _split(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B H L E"]:
        return x.unflatten(-1, (self.dims.heads, -1)).transpose(1, 2)
