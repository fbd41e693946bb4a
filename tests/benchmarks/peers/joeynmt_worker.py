"""JoeyNMT's side of `training_peer.py`; runs in an environment that has JoeyNMT and not the bench.

Reads the number of steps from each line of its input, trains as many on the next batches of a file,
and answers with a line of JSON: CPU seconds and target tokens.
"""

import json
import sys
import time
from types import SimpleNamespace

import torch
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary

SPECIAL = SimpleNamespace(
    unk_token="<unk>",
    pad_token="<pad>",
    bos_token="<s>",
    eos_token="</s>",
    sep_token=None,
    unk_id=0,
    pad_id=1,
    bos_id=2,
    eos_id=3,
    sep_id=None,
    lang_tags=[],
)
THEIR_IDS = torch.tensor([1, 2, 3, 0])
"""Our padding, begin, end and unknown word in JoeyNMT's order."""


def vocabulary(size: int) -> Vocabulary:
    return Vocabulary([f"w{number}" for number in range(4, size)], SPECIAL)


def recurrent(options: dict) -> dict:
    embeddings = {"embedding_dim": options["embedding"], "dropout": options["dropout"]}
    return {
        "encoder": {
            "type": "recurrent",
            "rnn_type": "gru",
            "bidirectional": True,
            "hidden_size": options["width"] // 2,
            "num_layers": 1,
            "embeddings": embeddings,
        },
        "decoder": {
            "type": "recurrent",
            "rnn_type": "gru",
            "hidden_size": options["width"],
            "num_layers": 1,
            "attention": "bahdanau",
            "init_hidden": "bridge",
            "input_feeding": True,
            "hidden_dropout": options["dropout"],
            "embeddings": embeddings,
        },
    }


def transformer(options: dict) -> dict:
    side = {
        "type": "transformer",
        "hidden_size": options["width"],
        "ff_size": 4 * options["width"],
        "num_layers": options["layers"],
        "num_heads": options["heads"],
        "dropout": options["dropout"],
        "embeddings": {"embedding_dim": options["width"], "dropout": options["dropout"]},
    }
    return {"encoder": side, "decoder": dict(side)}


def theirs(ids: torch.Tensor) -> torch.Tensor:
    return torch.where(ids < 4, THEIR_IDS[ids.clamp(max=3)], ids)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = torch.load(sys.argv[1], weights_only=True)
    options = json.loads(sys.argv[2])
    made = {"rnn": recurrent, "transformer": transformer}[options["model"]](options)
    model = build_model(made, vocabulary(data["source"]), vocabulary(data["target"]))
    model.loss_function = ("crossentropy", 0.0)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options["lr"], weight_decay=0, fused=True)
    print(json.dumps({"parameters": sum(p.numel() for p in model.parameters())}), flush=True)
    place = 0
    for line in sys.stdin:
        start, tokens = time.process_time(), 0
        for _ in range(int(line)):
            source, inputs, targets = (theirs(x) for x in data["batches"][place])
            place = (place + 1) % len(data["batches"])
            real = targets != SPECIAL.pad_id
            seen = (source != SPECIAL.pad_id).unsqueeze(1)
            optimizer.zero_grad(set_to_none=True)
            loss, *_ = model(
                return_type="loss",
                src=source,
                trg_input=inputs,
                trg=targets,
                src_mask=seen,
                src_length=seen.sum(-1).squeeze(1),
                trg_mask=real.unsqueeze(1),
            )
            (loss / real.sum()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            tokens += int(real.sum())
        print(json.dumps([time.process_time() - start, tokens]), flush=True)


if __name__ == "__main__":
    main()
