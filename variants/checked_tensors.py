"""Checks of the tensors that a user's own model hands to attention.

Each refusal is one sentence with the shape that is wanted. All but the range of labels and the
values of masks are comparisons of shapes.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from bench.api.call import Dims
from bench.api.errors import InvalidConfig
from bench.api.source import Tree


class Asked(NamedTuple):
    """Sizes of a call, with which declared inputs of its queries are compared."""

    rows: int
    queries: int
    keys: int
    """Keys that have come."""
    whole: bool
    """Whether no more keys come later."""


def expect_tensor(what: str, x: object) -> Tensor:
    """Refuse lists, arrays of NumPy and what was left out; return what is a tensor.

    Raises:
        InvalidConfig: It is no tensor.
    """
    if not isinstance(x, Tensor):
        raise InvalidConfig(f"{what} must be a torch.Tensor, got {type(x).__name__}.")
    return x


def expect_vectors(what: str, x: Tensor, width: int) -> None:
    """Refuse what is no batch of sequences of vectors of this width.

    Raises:
        InvalidConfig: It is no tensor, or has another shape.
    """
    expect_tensor(what, x)
    if x.dim() != 3 or x.shape[2] != width:
        raise InvalidConfig(
            f"{what} must have shape (batch, length, {width}), got {tuple(x.shape)}."
        )


def expect_values(values: Tensor, source: Tensor) -> None:
    """Refuse values that are not one vector for each vector of the source.

    Raises:
        InvalidConfig: They are no tensor, or have another shape.
    """
    expect_tensor("the values", values)
    if values.shape != source.shape:
        raise InvalidConfig(
            f"the values must have the shape of the source, {tuple(source.shape)}, got "
            f"{tuple(values.shape)}."
        )


def expect_declared(names: Iterable[str], extras: Tree | None, asked: Asked, dims: Dims) -> None:
    """Refuse a call without an input of its queries that the attention reads, or a wrong one.

    Args:
        names: Inputs that the attention reads.
        extras: What the call hands on.
        asked: Sizes of the call.
        dims: Sizes of the attention.

    Raises:
        InvalidConfig: One is missing or no tensor, or has another shape, type or range.
    """
    for name in names:
        found = (extras or {}).get(name)
        if found is None:
            raise InvalidConfig(
                f'this attention reads "{name}" of each query; hand it on as '
                f'extras={{"{name}": ...}}.'
            )
        given = expect_tensor(f'"{name}"', found)
        if name == "relation":
            _expect_labels(given, asked, dims.relations)
        else:
            _expect_words(given, asked, dims.word_width)


def _expect_words(words: Tensor, asked: Asked, width: int) -> None:
    wanted = (asked.rows, asked.queries, width)
    if words.shape != wanted:
        raise InvalidConfig(
            f'"word" must have shape {wanted}, a vector for each query, got {tuple(words.shape)}.'
        )


def _expect_labels(labels: Tensor, asked: Asked, count: int) -> None:
    wanted = (asked.rows, asked.queries, asked.keys)
    # a step may have labels of tokens that come later; they are not read yet
    cut = labels.dim() == 3 and not asked.whole
    if (labels[..., : asked.keys] if cut else labels).shape != wanted:
        raise InvalidConfig(
            f'"relation" must have shape {wanted}, a label for each query and token, got '
            f"{tuple(labels.shape)}."
        )
    if labels.dtype not in (torch.int64, torch.int32):
        raise InvalidConfig(f'"relation" must hold whole numbers (int64), got {labels.dtype}.')
    expect_all(
        (labels >= 0) & (labels < count),
        f'"relation" must hold labels from 0 to {count - 1}; this one has others.',
    )


def expect_all(holds: Tensor, sentence: str) -> None:
    """Raise unless all hold; in compiled code and on an accelerator without waiting for it."""
    if holds.is_cpu and not torch.compiler.is_compiling():
        if not bool(holds.all()):
            raise InvalidConfig(sentence)
    else:
        torch._assert_async(holds.all(), sentence)
