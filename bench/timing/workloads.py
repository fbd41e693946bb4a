"""The calls that are timed: one variant beneath its heads, on random inputs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from bench.api.build import build_variant
from bench.api.call import Attended, QueryShape
from bench.api.errors import Refused
from bench.api.impl import Impl
from bench.api.missing_method import missing_method
from bench.api.noise import Noise
from bench.api.places import timed_place
from bench.api.resolve import VariantSpec
from bench.api.source import Memory, Source, State
from bench.api.variant import Variant
from bench.timing.reason import Reason, attempt
from bench.timing.shape import AttendShape, Workload
from bench.timing.timed_dims import timed_dims
from bench.timing.timed_inputs import Inputs, fit_inputs, query_extras, with_inputs
from bench.timing.timed_slot import TimedSlot, build_timed_slot, layers_of
from bench.timing.timer import Work

T = TypeVar("T")

RECOMPILED = 64
"""Shapes and modes of one variant that are compiled before it counts as an error."""
ALL_RECOMPILED = 4096
"""The same of all variants of a process, where torch counts them together (before 2.13)."""
COUNTS_EACH = "isolate_recompiles" in signature(torch.compile).parameters
DRAWS = Noise(0)
"""For mechanisms that draw even when they are scored."""


def plain_code(impl: Impl) -> Impl:
    """The code that parts are built with: what is compiled is plain torch."""
    return "eager" if impl == "compiled" else impl


def compile_attend(variant: Variant, backend: str = "inductor") -> None:
    """Put `torch.compile` before `attend`; nothing is compiled before the first call.

    The whole call is one graph, so that nothing falls back to plain code unseen (ADR 28). Each
    shape is compiled for itself: what is timed has few, and the kernels are best for sizes that
    they know. A copy of the variant would still call this one, so copy first. Parts that cannot be
    traced whole raise at the first call.
    """
    compiled = torch.compile(
        variant.attend, backend=backend, fullgraph=True, dynamic=False, **_limits()
    )
    # bound to the instance, so that the loops of `torch.nn.Module` stay as they are
    variant.attend = compiled  # type: ignore[method-assign]


@contextmanager
def plain_attend(variant: Variant) -> Iterator[None]:
    """Let a variant attend without its compiler, for what is not timed."""
    compiled = vars(variant).pop("attend", None)
    try:
        yield
    finally:
        if compiled is not None:
            vars(variant)["attend"] = compiled


def _limits() -> dict[str, Any]:
    """Options of `torch.compile` by which it never leaves a shape to plain code."""
    if COUNTS_EACH:
        return {"recompile_limit": RECOMPILED, "isolate_recompiles": True}
    config = torch._dynamo.config
    config.recompile_limit = config.accumulated_recompile_limit = ALL_RECOMPILED
    return {}


def build(spec: VariantSpec, shape: AttendShape, impl: Impl, *, seed: int) -> Variant:
    """Build a variant with seeded parameters; the caller's random state stays as it is.

    Raises:
        Refused: The variant has no meaning in this regime.
    """
    made = _built(spec, shape, plain_code(impl), seed)
    if impl == "compiled":
        compile_attend(made)
    return made


def _built(spec: VariantSpec, shape: AttendShape, impl: Impl, seed: int) -> Variant:
    with torch.random.fork_rng(devices=()):
        # parts are built on the CPU; `torch.manual_seed` would also set what GPUs draw
        torch.default_generator.manual_seed(seed)
        if shape.place == "slot":
            return build_timed_slot(spec, shape, impl)
        dims, given = timed_dims(spec, shape), timed_place(shape.regime)
        if dims.kv_heads != dims.heads:
            given -= {"equal_heads"}
        if dims.query_width != dims.key_width:
            given -= {"equal_width"}
        return build_variant(spec, dims, impl=impl, given=given)


def answer(
    variant: Variant, query: Tensor, source: Source, *, want_weights: bool = False, **call: object
) -> Attended:
    """Prepare, start and attend: what a layer does with one batch."""
    rows, heads, _, width = query.shape
    like = QueryShape(rows, heads, width, query.dtype, query.device)
    source = with_inputs(variant, source)
    extras = query_extras(variant, query)
    options = {"want_weights": want_weights, "extras": extras, "noise": DRAWS, **call}
    if variant.dims.regime in ("cross", "pool"):
        memory = variant.receive(source)
        state = variant.start(memory, like)
        return variant.attend(query, memory, state, **options)  # type: ignore[arg-type]
    state = variant.start(None, like)
    return variant.attend(query, None, state, new=source, **options)  # type: ignore[arg-type]


def forward(variant: Variant, inputs: Inputs) -> Work:
    """Answer all queries without gradients, as a trained model is scored."""
    inputs = fit_inputs(inputs, variant.dims)
    return without_gradients(lambda: answer(variant, inputs.query, inputs.source))


def forward_weights(variant: Variant, inputs: Inputs) -> Work:
    """The same with the weight matrix.

    Raises:
        Refused: The variant has no weights to give.
    """
    inputs = fit_inputs(inputs, variant.dims)
    work = without_gradients(
        lambda: answer(variant, inputs.query, inputs.source, want_weights=True)
    )
    if work().weights is None:
        raise Refused("this mechanism gives no attention weights.")
    return work


def forward_backward(variant: Variant, inputs: Inputs) -> Work:
    """Answer all queries as in training, and propagate a random gradient to everything."""
    inputs = fit_inputs(inputs, variant.dims)
    query = inputs.query.detach().requires_grad_()
    key = inputs.source.key.detach().requires_grad_()
    value = inputs.source.value.detach().requires_grad_()
    source = replace(inputs.source, key=key, value=value)
    leaves = (query, key, value, *variant.parameters())
    noise = Noise(inputs.seed)

    def forget() -> None:
        for leaf in leaves:
            leaf.grad = None

    def work() -> None:
        forget()
        try:
            # as every network is trained, also where nothing is drawn: hardmax has its gradient so
            attended = answer(variant, query, source, read="train", noise=noise)
            attended.output.backward(inputs.gradient)
        except Exception:
            forget()  # half of the gradients would stay where memory has just run out
            raise

    return work


def decode_step(variant: Variant, inputs: Inputs) -> Work:
    """Answer one query against S keys that were prepared, or cached under self-attention.

    The cache has room for the new key, as in a sentence that goes on: every call writes it to the
    same place.

    Raises:
        Refused: All queries come at once here, so there is no step.
    """
    if variant.dims.regime in ("self", "pool"):
        raise Refused("there is no decoding where all queries come at once.")
    inputs = fit_inputs(inputs, variant.dims)
    query, source = inputs.next_query, inputs.source
    if variant.dims.regime == "cross":
        return _cross_step(variant, query, without_gradients(lambda: variant.receive(source))())
    with plain_attend(variant):
        state = without_gradients(lambda: _filled(variant, inputs))()
    rewind = _rewinding(state)
    new, extras = with_inputs(variant, inputs.next_source), query_extras(variant, query)

    def step() -> Attended:
        rewind()  # nobody reads what the last call wrote
        return variant.attend(
            query, None, state, new=new, noise=DRAWS, want_weights=False, extras=extras
        )

    return without_gradients(step)


def _rewinding(state: State) -> Callable[[], None]:
    """What lets the next call write where the last one wrote."""
    caches = [one.cache.room for one in layers_of(state) if one.cache is not None]
    ends = [(room, room.taken) for room in caches if room is not None]
    taken = [(one.rooms, one.rooms.taken()) for one in layers_of(state) if one.rooms is not None]

    def rewind() -> None:
        for room, end in ends:
            room.rewind(end)
        for rooms, ends_of_rooms in taken:
            rooms.rewind(ends_of_rooms)

    return rewind


def _filled(variant: Variant, inputs: Inputs) -> State:
    """A state behind S keys, the last of which came alone, so that its cache has room."""
    before = inputs.source.num_keys - 1
    if not before:
        return answer(variant, inputs.query, inputs.source).state
    first, last = (_keys(inputs.source, one) for one in (slice(before), slice(before, None)))
    state = answer(variant, inputs.query[:, :, :before], first).state
    query, new = inputs.query[:, :, before:], with_inputs(variant, last)
    extras = query_extras(variant, query)
    return variant.attend(
        query, None, state, new=new, noise=DRAWS, want_weights=False, extras=extras
    ).state


def _keys(source: Source, keys: slice) -> Source:
    """Some keys of a source that has nothing else beside them than tokens."""
    tokens = None if source.tokens is None else source.tokens[:, keys]
    return Source(key=source.key[:, :, keys], value=source.value[:, :, keys], tokens=tokens)


def _cross_step(variant: Variant, query: Tensor, memory: Memory) -> Work:
    rows, heads, _, width = query.shape
    like = QueryShape(rows, heads, width, query.dtype, query.device)
    state = without_gradients(lambda: variant.start(memory, like))()
    extras = query_extras(variant, query)
    return without_gradients(
        lambda: variant.attend(query, memory, state, noise=DRAWS, want_weights=False, extras=extras)
    )


def without_gradients(work: Callable[[], T]) -> Callable[[], T]:
    """The same call under `no_grad`."""

    def call() -> T:
        with torch.no_grad():
            return work()

    return call


MAKERS: dict[Workload, Callable[[Variant, Inputs], Work]] = {
    "forward": forward,
    "forward_weights": forward_weights,
    "forward_backward": forward_backward,
    "decode_step": decode_step,
}


class Made(NamedTuple):
    """Calls of one variant, and why it lacks others that were asked for."""

    works: dict[str, Work]
    lost: dict[str, Reason]


def make_works(
    spec: VariantSpec, variant: Variant, inputs: Inputs, asked: tuple[Workload, ...]
) -> Made:
    """Make and call once every workload; one that cannot be called keeps the reason."""
    found = Made({}, {})
    place = timed_place(variant.dims.regime, with_heads=isinstance(variant, TimedSlot))
    stepwise = spec.refusal(place | {"stepwise"})
    for workload in asked:
        if workload == "decode_step" and stepwise is not None:
            found.lost[workload] = Reason("refused", stepwise)
            continue
        work = attempt(partial(_made, workload, variant, inputs))
        if isinstance(work, Reason):
            found.lost[workload] = work
        else:
            found.works[workload] = work
    return found


def _made(workload: Workload, variant: Variant, inputs: Inputs) -> Work:
    try:
        work = MAKERS[workload](variant, inputs)
        work()
    except NotImplementedError as error:
        if missing_method(error):
            raise
        raise Refused(str(error)) from error
    return work
