"""Sizes of latent attention as multiples of the width of one head.

DeepSeek-AI, 2024, "DeepSeek-V2: a strong, economical, and efficient mixture-of-experts language
model", https://arxiv.org/abs/2405.04434, section 2.1.4 and table 1: the latent vector is four times
as wide as one head, and the key that positions turn is half as wide. A token then leaves 9/2 widths
of a head in the cache. Section 3.1.2 has the numbers, 512 and 64 for heads of width 128.

Deviations: queries have no latent vector of their own. With that of the paper, twelve times as wide
as one head, eight heads would map queries to more numbers than a state has. DeepSeek-V2-Lite, of
sixteen heads, has none either (appendix B).
"""

from fractions import Fraction

from bench.api.head_sizes import declare_multiples

declare_multiples("mla", latent=Fraction(4), turned=Fraction(1, 2), query_latent=Fraction(0))
