"""What decoding keeps: the bytes of the state that causal attention has after a sequence."""

import torch

from bench.api import kept_bytes
from bench.api.backbone import Backbone
from bench.api.batch import Batch
from bench.api.noise import DRAWS
from bench.api.trace import Mode


def state_bytes(backbone: Backbone, batch: Batch) -> int | None:
    """Bytes of the states of all slots after the first row of a batch; None without causal slots.

    They are those of the live tensors: caches of keys and values, what components carry, and what
    heads remember. A short convolution of the backbone is the same for every variant and is not
    counted.
    """
    slots = backbone.variant_slots()
    if not slots or any(slot.heads.dims.regime != "causal" for slot in slots):
        return None
    training = backbone.training
    backbone.eval()
    one = torch.zeros(1, dtype=torch.long, device=batch.targets.device)
    with torch.no_grad():
        mode = Mode(noise=DRAWS, want_weights=False)
        trace = backbone(backbone.arrange(batch.select(one)), mode)
    backbone.train(training)
    return kept_bytes.state_bytes(answer.state for answer in trace.attended)
