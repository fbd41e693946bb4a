"""Parts of the digits, and pictures cut into patches."""

import torch

from tasks.data.digits import load_digits, patches


def test_no_image_is_in_two_parts():
    parts = [load_digits(name).images.flatten(1) for name in ("train", "validation", "test")]
    assert [len(part) for part in parts] == [1000, 297, 500]
    together = torch.cat(parts)
    assert len(together.unique(dim=0)) == len(together)


def test_images_are_ink_from_zero_to_one_and_every_digit_is_in_every_part():
    for name in ("train", "validation", "test"):
        images, labels = load_digits(name)
        assert images.shape[1:] == (8, 8)
        assert (float(images.min()), float(images.max())) == (0.0, 1.0)
        assert labels.unique().tolist() == list(range(10))


def test_images_of_some_digits_are_only_those():
    some = load_digits("train").of(3, 8)
    assert some.labels.unique().tolist() == [3, 8]
    assert len(some.images) == len(some.labels)


def test_patches_stand_row_by_row_with_their_pixels_row_by_row():
    picture = torch.arange(16.0).view(1, 4, 4)
    assert patches(picture, 2)[0].tolist() == [
        [0, 1, 4, 5],
        [2, 3, 6, 7],
        [8, 9, 12, 13],
        [10, 11, 14, 15],
    ]
