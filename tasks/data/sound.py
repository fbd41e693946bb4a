"""Sound as frames: the logarithm of energies in mel bands, some windows side by side.

Davis & Mermelstein, 1980, "Comparison of parametric representations for monosyllabic word
recognition", https://doi.org/10.1109/TASSP.1980.1163420 (mel bands, section II); frames side by
side as in Chan et al., 2016, "Listen, attend and spell", https://arxiv.org/abs/1508.01211.

Deviations: no cosine transform, as is usual for networks; energies get a floor before the
logarithm.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

FLOOR = 1e-5
"""Added to every energy, for samples from -1 to 1; about what a quiet room gives."""


@dataclass(frozen=True, kw_only=True)
class LogMel:
    """How sound becomes frames."""

    rate: int = 8000
    """Samples a second."""
    window: int = 200
    """Samples of a window: 25 ms."""
    hop: int = 80
    """Samples between two windows: 10 ms."""
    mels: int = 24
    """Bands."""
    stack: int = 2
    """Windows side by side in a frame."""

    @property
    def width(self) -> int:
        """Numbers of a frame."""
        return self.mels * self.stack

    @property
    def step(self) -> int:
        """Samples from one frame to the next."""
        return self.hop * self.stack

    def frames(self, samples: int) -> int:
        """Frames of so many samples; the last one may be filled up with silence."""
        return max(1, -(-samples // self.step))

    def bands(self, waves: Float[Tensor, "B N"]) -> Float[Tensor, "B W mels"]:
        """Log energies of every window; as many windows as fill the frames of N samples."""
        windows = self.frames(waves.shape[1]) * self.stack
        needed = (windows - 1) * self.hop + self.window
        filled = functional.pad(waves, (0, needed - waves.shape[1]))
        cut = filled.unfold(1, self.window, self.hop) * torch.hann_window(self.window)
        size = 2 ** math.ceil(math.log2(self.window))
        energy = torch.fft.rfft(cut, n=size).abs().square()
        return (energy @ mel_filters(self.rate, size, self.mels) + FLOOR).log()


@dataclass(frozen=True, kw_only=True)
class LogMelScale:
    """Mean and deviation of each band over the training part."""

    mean: Float[Tensor, " mels"]
    deviation: Float[Tensor, " mels"]


def mel_filters(rate: int, size: int, bands: int) -> Float[Tensor, "n {bands}"]:
    """Triangles that are evenly spaced in mel, m = 2595 log10(1 + f / 700), over `size // 2 + 1`.

    >>> mel_filters(8000, 256, 24).shape
    torch.Size([129, 24])
    """
    top = 2595 * math.log10(1 + rate / 2 / 700)
    corners = 700 * (10 ** (torch.linspace(0, top, bands + 2) / 2595) - 1)
    hertz = torch.linspace(0, rate / 2, size // 2 + 1).unsqueeze(1)
    low, middle, high = corners[:-2], corners[1:-1], corners[2:]
    rising = (hertz - low) / (middle - low)
    falling = (high - hertz) / (high - middle)
    return torch.minimum(rising, falling).clamp(min=0)


def fit_scale(waves: Sequence[Float[Tensor, " _"]], sound: LogMel) -> LogMelScale:
    """Mean and deviation of each band over the windows of some recordings."""
    found = torch.cat([sound.bands(wave.unsqueeze(0))[0] for wave in waves])
    return LogMelScale(mean=found.mean(0), deviation=found.std(0).clamp(min=1e-3))


def to_frames(
    waves: Sequence[Float[Tensor, " _"]], sound: LogMel, scale: LogMelScale
) -> tuple[Float[Tensor, "B S F"], Bool[Tensor, "B S"]]:
    """Frames of some recordings, zero where padded, and the mask that is True at real ones."""
    longest = max(len(wave) for wave in waves)
    padded = torch.stack([functional.pad(wave, (0, longest - len(wave))) for wave in waves])
    bands = (sound.bands(padded) - scale.mean) / scale.deviation
    frames = bands.unflatten(1, (-1, sound.stack)).flatten(2)
    lengths = torch.tensor([sound.frames(len(wave)) for wave in waves])
    mask = torch.arange(frames.shape[1]) < lengths.unsqueeze(1)
    return torch.where(mask.unsqueeze(-1), frames, 0.0), mask
