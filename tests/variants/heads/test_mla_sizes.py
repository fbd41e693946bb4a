"""The published sizes of DeepSeek-V2 follow from the width of its heads."""

from dataclasses import fields

from bench.api.head_sizes import multiples_of
from variants.heads.mla import MlaConfig


def test_heads_of_width_128_have_the_sizes_of_the_paper():
    found = multiples_of("mla")
    assert (128 * found["latent"], 128 * found["turned"]) == (512, 64)
    assert found["latent"] + found["turned"] == 4.5


def test_every_multiple_is_an_option_of_the_heads():
    assert set(multiples_of("mla")) <= {field.name for field in fields(MlaConfig)}
