"""Linear maps to queries, keys and values, which most heads share."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bench.api.call import Dims
from bench.api.errors import InvalidConfig
from bench.api.heads import Heads
from bench.api.source import Source


def width_of_head(name: str, heads: int, model_width: int) -> int:
    """Width of each of some heads.

    Raises:
        InvalidConfig: They do not divide the model width.
    """
    if heads < 1 or model_width % heads:
        raise InvalidConfig(
            f"{name}: heads must divide the model width {model_width}, got {heads}."
        )
    return model_width // heads


def oracle_linear(layer: nn.Linear, x: Float[Tensor, " D"]) -> list[Float[Tensor, ""]]:
    """A linear map of one vector, as a list of numbers."""
    numbers = layer.weight @ x
    return list(numbers if layer.bias is None else numbers + layer.bias)


class ProjectedHeads(Heads):
    """Projects a query for each head, and a key and a value for each key head.

    A subclass says how heads are merged.
    """

    def project(self, dims: Dims, source_width: int, *, bias: bool) -> None:
        """Make the three maps; a subclass calls this while it is built."""
        self.dims = dims
        self.to_query = nn.Linear(dims.model_width, dims.heads * dims.query_width, bias=bias)
        self.to_key = nn.Linear(source_width, dims.kv_heads * dims.key_width, bias=bias)
        self.to_value = nn.Linear(source_width, dims.kv_heads * dims.value_width, bias=bias)

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
        heads = self.dims.kv_heads
        key, value = split_heads(self.to_key(x), heads), split_heads(self.to_value(x), heads)
        return Source(key=key, value=value, mask=mask, tokens=tokens)

    def oracle_query(self, x: Float[Tensor, " D"]) -> Float[Tensor, "H Eq"]:
        """One vector, head by head."""
        return oracle_split(self.to_query, x, self.dims.heads)

    def oracle_source(
        self, x: Float[Tensor, " Dk"]
    ) -> tuple[Float[Tensor, "Hk Ek"], Float[Tensor, "Hk Ev"]]:
        """One vector, head by head."""
        heads = self.dims.kv_heads
        return oracle_split(self.to_key, x, heads), oracle_split(self.to_value, x, heads)

    def _split(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B H L E"]:
        return split_heads(x, self.dims.heads)


class Concatenated(Heads):
    """Heads that are concatenated and mapped back to the model width; a subclass makes the map."""

    to_output: nn.Linear

    def merge(self, output: Float[Tensor, "B H L E"]) -> Float[Tensor, "B L D"]:
        """Concatenate the heads and project."""
        return self.to_output(output.transpose(1, 2).flatten(2))

    def oracle_merge(self, output: Float[Tensor, "H E"]) -> Float[Tensor, " D"]:
        """One head after the other."""
        joined = torch.stack([number for head in output for number in head])
        return torch.stack(oracle_linear(self.to_output, joined))


class JoinedHeads(Concatenated, ProjectedHeads):
    """Projected heads that are concatenated and mapped back to the model width."""

    def project(self, dims: Dims, source_width: int, *, bias: bool) -> None:
        """Make the four maps; a subclass calls this while it is built."""
        super().project(dims, source_width, bias=bias)
        self.output_width = dims.model_width
        joined = dims.heads * dims.value_width
        self.to_output = nn.Linear(joined, dims.model_width, bias=bias)
        for layer in (self.to_query, self.to_key, self.to_value, self.to_output):
            nn.init.xavier_uniform_(layer.weight)


def split_heads(x: Float[Tensor, "B L D"], heads: int) -> Float[Tensor, "B H L E"]:
    """Cut every vector into neighboring parts, one a head."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def oracle_split(layer: nn.Linear, x: Float[Tensor, " D"], heads: int) -> Float[Tensor, "H E"]:
    """A linear map of one vector, cut into heads."""
    numbers = oracle_linear(layer, x)
    width = len(numbers) // heads
    rows = [numbers[h * width : (h + 1) * width] for h in range(heads)]
    return torch.stack([torch.stack(row) for row in rows])
