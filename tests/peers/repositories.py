"""Code that is in no package index: classes and functions of single files of Git repositories."""

import __future__

import ast
import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

SOURCES = "BENCH_PEER_SOURCES"
"""A folder with a checkout of each repository, `owner+name`."""
HOST = "github.com"


@dataclass(frozen=True)
class Repository:
    """What was compared with."""

    commit: str
    files: dict[str, str]
    """Id that Git gives to each file of this commit, by its path."""

    @property
    def version(self) -> str:
        """As long as people write it."""
        return self.commit[:12]


FOX = "src/forgetting_transformer/model/forgetting_transformer"
GNMT = "PyTorch/Translation/GNMT/seq2seq/models"
REPOSITORIES = {
    "NVIDIA/DeepLearningExamples": Repository(
        "729963dd47e7c8bd462ad10bfac7a7b0b604e6dd",
        {
            f"{GNMT}/attention.py": "31a9b902ea1a50ca594f8ed909599a62c4ce80ff",
            f"{GNMT}/decoder.py": "b9d96ce178fa24c8b8271bacedc1cea594fc9e6b",
        },
    ),
    "OpenNLPLab/cosFormer": Repository(
        "8e12da111e2a683ea875711e0bf5810c6b4e8f9f",
        {"cosformer.py": "d9653cea24ca677b3cfb0d5990e917ebf5cd32e8"},
    ),
    "chijames/KERPLE": Repository(
        "25be3d712e96a3353b374f1f8e36b97d86f97ffa",
        {"megatron/mpu/layers.py": "8fd76b3e4d62b04287cfee90b758bd7376d50f58"},
    ),
    "facebookresearch/PhysicsLM4": Repository(
        "75806965208c55e9f7f2e2363d3793d2da75d2e4",
        {
            "huggingface/canon_helper.py": "155648e261ee7cadfdd1956c31354fe163fd4ea9",
            "huggingface/modeling_llama_canon.py": "5b4b8a03b02dfe577bd1e902d213817c28e00e6b",
        },
    ),
    "facebookresearch/RAM": Repository(
        "e6f051fbcfaef4cab69bf2ea1b25f500f94c0c64",
        {"projects/mta/mta_transformer.py": "5fe5f439f5df8e793694e664174df208e33e8add"},
    ),
    "facebookresearch/adaptive-span": Repository(
        "27b815fee821acce2c2d4104cc0720cb1dc74c37",
        {
            "adaptive_span.py": "a4ee933d024004bc75311a5f56a5183b775ce209",
            "models.py": "7ae37ecd1d99d083cd814276db4e02af436a3584",
        },
    ),
    "guolinke/TUPE": Repository(
        "4c64ff748a7039be4918429f05bbb43d81357107",
        {
            "fairseq/modules/multihead_attention.py": "b03e8ffb60d74f870c733e34b46cee6dd43a60ad",
            "fairseq/modules/transformer_sentence_encoder.py": (
                "524a5101f250f261e4806aa98399e9afa29a7ee6"
            ),
        },
    ),
    "loudinthecloud/pytorch-ntm": Repository(
        "3c64937cb075e737528ff7ecf02b2c1c6d8347a1",
        {
            "ntm/head.py": "10f0e85b09d1e55874477a5bec327a5e530252c6",
            "ntm/memory.py": "6f8cf2e655df7f554f7d26904b6c4bbcd4ad5e40",
        },
    ),
    "mcleish7/arithmetic": Repository(
        "86022a57d38c0fde46444d62e8dcbebcc0af614c",
        {"cramming/architectures/embeddings.py": "fa97a44c526a73f50eefb8311975b737d59cd736"},
    ),
    "tensorgi/T6": Repository(
        "8f478201c189427e6415b03cc95c844146ee3506",
        {"model/T6.py": "f35eb8f4e5e61527dadbf6cee684b69dd75f0b56"},
    ),
    "timoderbeste/neural_programmer_iclr2016_implementation": Repository(
        "7793a815fa0fa3ce286118ed278c7fce292e0dab",
        {
            "src/models/history_rnn.py": "488fee065d8311c390e22fcde06642abdb81e0da",
            "src/models/selector.py": "a603666695be794b24f0701eb4ecbc6e7b6db159",
        },
    ),
    "zaydzuhri/softpick-attention": Repository(
        "c97f4dc5f9fcec2e8afc2932db2cba6d7d7e5465",
        {"naive_softpick_attn.py": "e8a5c5e9260a28a9d34c2d138365f64ca2ca7240"},
    ),
    "zhixuan-lin/forgetting-transformer": Repository(
        "883f260c636e87971339749b0d8310004794a5cc",
        {
            f"{FOX}/fuse_norm_gate.py": "7318c6deab54e842e1dd40e762c6933516d18461",
            f"{FOX}/layernorm.py": "482af2171dd553ce7c66eaa7220eb27f92141355",
            f"{FOX}/modeling_forgetting_transformer.py": (
                "300c7a451753efb76811f5fc919f2d32701b5507"
            ),
        },
    ),
}
"""By `owner/name`; each is at `https://github.com/owner/name`."""


def taken(repository: str, path: str, names: str, **given: Any) -> SimpleNamespace:
    """Run some classes and functions of a file alone, without what else it holds or imports.

    Skips the test where there is no checkout, and fails it where the file is another one.

    Args:
        repository: Its `owner/name`.
        path: The file inside it.
        names: What to take, in the order in which the file has it.
        given: What they read besides torch.
    """
    file, known = checkout(repository) / path, REPOSITORIES[repository]
    content = file.read_bytes()
    if git_id(content) != known.files[path]:
        pytest.fail(f"{path} of {repository} is not that of commit {known.commit}; check this out")
    wanted = names.split()
    tree = ast.parse(content)
    tree.body = [node for node in tree.body if getattr(node, "name", None) in wanted]
    # names of types need not be there if nobody looks at them
    flags = __future__.annotations.compiler_flag
    space = {
        "__name__": __name__,
        "F": functional,
        "Parameter": nn.Parameter,
        "Tensor": Tensor,
        "math": math,
        "nn": nn,
        "torch": torch,
        **given,
    }
    exec(compile(tree, str(file), "exec", flags), space)
    return SimpleNamespace(**{name: space[name] for name in wanted})


def checkout(repository: str) -> Path:
    """The folder of a repository; where there is none, the test skips and says so."""
    folder = os.environ.get(SOURCES)
    if folder is None:
        pytest.skip(f"{SOURCES} is not set; it names a folder with a checkout of {repository}")
    found = Path(folder, repository.replace("/", "+"))
    if not found.is_dir():
        pytest.skip(f"{SOURCES} has no folder {found.name} with a checkout of {repository}")
    return found


def git_id(content: bytes) -> str:
    """What Git calls a file with this content."""
    head = f"blob {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()


def tie(module: nn.Module, name: str, numbers: Tensor) -> None:
    """Let a parameter of ours be computed from one of theirs, so that gradients meet there."""
    assert getattr(module, name).shape == numbers.shape
    delattr(module, name)
    setattr(module, name, numbers)
