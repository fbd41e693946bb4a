"""A slot: heads around a variant, which a backbone holds in the place of attention."""

from dataclasses import replace
from typing import Unpack

from jaxtyping import Float
from torch import Tensor, nn

from bench.api.call import Attended, AttendOptions, Link, QueryShape
from bench.api.heads import Heads
from bench.api.inputs import input_maps, maps_of
from bench.api.source import Memory, Source, State
from bench.api.variant import Variant


class Slot(nn.Module):
    """What a backbone holds in the place of attention: heads around a variant."""

    def __init__(
        self, heads: Heads, variant: Variant, source_width: int, link: Link | None = None
    ) -> None:
        super().__init__()
        self.heads = heads
        heads.any_width = variant.any_width
        self.variant = variant
        self.link = link
        """What is read of a layer below; a backbone then hands it on in `attend`."""
        self.output_width = heads.output_width
        self.source_width = source_width
        dims = heads.dims
        # where the keys are those of a layer below, so are their inputs
        of_keys = {} if self.keeps_nothing else variant.key_inputs
        self.key_maps = input_maps(of_keys, source_width, dims.kv_heads)
        self.query_maps = input_maps(variant.query_inputs, dims.model_width, dims.heads)

    @property
    def keeps_nothing(self) -> bool:
        """Whether a layer below keeps keys and values for this one."""
        return self.link is not None and self.link.kept == "all"

    @property
    def keeps_keys_alone(self) -> bool:
        """Whether a layer below keeps values for this one."""
        return self.link is not None and self.link.kept == "values"

    def prepare(
        self,
        x: Float[Tensor, "B S Dk"],
        mask: Tensor | None = None,
        tokens: Tensor | None = None,
        values: Float[Tensor, "B S Dk"] | None = None,
    ) -> Memory:
        """Project a source and let the variant prepare it.

        Args:
            x: What is attended to.
            mask: True where it is real.
            tokens: Its ids, for variants that look at them.
            values: What is read in its place, where keys and values are not the same states.
        """
        # keys of another sequence are the same at every query, so they are written out once
        source = self._with_inputs(self.heads.source(x, mask, tokens).written(), x)
        if values is not None:
            read = self.heads.source(values, mask, tokens).written()
            source = replace(source, value=read.value, shared=0)
        return self.variant.receive(source)

    def _with_inputs(self, source: Source, x: Float[Tensor, "B S Dk"]) -> Source:
        """The source with the numbers that the variant wants beside its keys."""
        if not self.key_maps:
            return source
        found = {name: one(x).transpose(1, 2) for name, one in maps_of(self.key_maps).items()}
        return replace(source, extras={**source.extras, **found})

    def start(self, memory: Memory | None, x: Float[Tensor, "B L D"]) -> State:
        """State before the first query; `x` tells rows, dtype and device."""
        dims = self.heads.dims
        like = QueryShape(x.shape[0], dims.heads, dims.query_width, x.dtype, x.device)
        return replace(self.variant.start(memory, like), heads=self.heads.start(like))

    def attend(
        self,
        x: Float[Tensor, "B L D"],
        memory: Memory | None,
        state: State,
        *,
        own: tuple[Tensor, Tensor | None, Tensor | None] | None = None,
        below: Memory | None = None,
        **call: Unpack[AttendOptions],
    ) -> tuple[Float[Tensor, "B L Dv"], Attended]:
        """Answer hidden vectors.

        Args:
            x: The next vectors that ask.
            memory: What `prepare` made of a source; None under self-attention.
            state: What the previous call returned.
            own: Sequence, mask and tokens under self-attention.
            below: What the layer of `link` attended to in this call, where there is a link.
            call: How to answer.
        """
        new, past = None, state.heads
        if own is None:
            query = self.heads.query(x)
        elif self.link is None:
            query, new, past = self.heads.own(*own, past)
            new = self._with_inputs(new, own[0])
        else:
            assert below is not None, "what the layer of the link attended to must be handed on"
            if self.keeps_nothing:
                query, memory = self.heads.query(x), self.variant.read_below(below)
            else:
                query, new, past = self.heads.own_above(*own, past, below.newest(x.shape[1]))
                new = self._with_inputs(new, own[0])
            if self.keeps_keys_alone:
                call["values"] = below.source.value
        if self.query_maps:
            found = {name: one(x) for name, one in maps_of(self.query_maps).items()}
            call["extras"] = {**(call.get("extras") or {}), **found}
        if self.heads.any_width:
            call["written"] = self.heads.written
        attended = self.variant.attend(query, memory, state, new=new, **call)
        attended = attended._replace(state=replace(attended.state, heads=past))
        return self.heads.merge(self.heads.gate(attended.output, x)), attended
