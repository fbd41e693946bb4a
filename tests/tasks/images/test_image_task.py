"""Pieces laid on a canvas, and the picture that patches make again."""

import torch

from bench.api.batch import Text
from tasks.images.image_task import (
    cover,
    labeled,
    nearest,
    nearest_neighbors,
    paste,
    picture_text,
    whole_picture,
)


def test_a_picture_survives_being_cut_into_patches():
    picture = torch.rand(2, 8, 12, generator=torch.Generator().manual_seed(0))
    text = picture_text(picture, 4)
    assert text.grid == (2, 3)
    found = whole_picture(labeled(text, torch.tensor([0, 0])), 1)
    assert found is not None
    assert torch.equal(torch.tensor(found.gray), picture[1])
    assert found.grid == (2, 3)


def test_words_make_no_picture():
    words = Text(torch.ones(1, 4, dtype=torch.int64), None)
    assert whole_picture(labeled(words, torch.tensor([0])), 0) is None


def test_a_piece_lies_where_its_corner_is_and_the_darker_pixel_stays():
    canvas = torch.zeros(1, 4, 4)
    paste(canvas, torch.full((1, 2, 2), 0.5), torch.tensor([[0, 0]]))
    paste(canvas, torch.tensor([[[0.2, 0.9], [0.9, 0.9]]]), torch.tensor([[1, 1]]))
    assert torch.allclose(
        canvas[0],
        torch.tensor([[0.5, 0.5, 0, 0], [0.5, 0.5, 0.9, 0], [0, 0.9, 0.9, 0], [0, 0, 0, 0]]),
    )


def test_a_square_covers_places_by_the_share_of_its_pixels():
    found = cover(torch.tensor([[0, 1]]), 2, 4, 2)
    assert found.tolist() == [[0.5, 0.5, 0.0, 0.0]]


def test_the_nearest_picture_is_the_one_with_the_nearest_pixels():
    train = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    test = torch.tensor([[0.9, 0.8], [0.1, 0.1]])
    assert nearest(train, test) == [1, 0]
    assert nearest_neighbors((train, [5, 6, 7]), (test, [6, 6]), 1) == 0.5
