"""The machine and the code that produced a record: facts stored once beside the ledger."""

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("torch", "triton", "numpy", "pandas", "scipy", "datasets", "optuna")
"""Libraries whose version can change a number."""

CPU_FACTS = Path("/proc/cpuinfo")
GENERATION = ("cpu family", "model", "stepping")
"""What tells two generations of a processor apart where their names are the same."""

PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What a reader needs to know to repeat a measurement."""

    cpu: str
    """Model name of the processor, with the numbers of its generation."""
    physical_cores: int
    """Cores of the machine, hyper-threads not counted."""
    logical_cores: int
    """Cores of the machine, hyper-threads counted."""
    memory_bytes: int
    """Installed memory."""
    platform: str
    """Operating system, kernel and C library."""
    python: str
    """Version of the interpreter."""
    packages: dict[str, str]
    """Version of each installed library of `PACKAGES`."""
    threads: int
    """Threads that one cell may use."""
    aten_cpu_capability: str = ""
    """Vector instructions torch uses (`AVX2`, `AVX512`); empty where torch was not loaded."""
    gpu: str = ""
    """Name of the current GPU; empty without one, or where torch was not loaded."""
    gpu_driver: str = ""
    """Version of the NVIDIA driver."""
    gpu_capability: str = ""
    """Compute capability, `9.0`."""
    torch_settings: dict[str, str] = field(default_factory=dict)
    """What torch was allowed to compute with, by name: TF32, determinism, back ends of fused
    attention; empty where torch was not loaded."""
    git_revision: str = ""
    """Commit of this project; empty outside a checkout."""
    git_dirty: bool | None = None
    """Whether files differ from that commit, new files included; None outside a checkout."""
    load_average: float = field(default=0.0, compare=False)
    """Runnable processes in the last minute, when collected; no part of the id."""

    @cached_property
    def id(self) -> str:
        """Twelve hex digits of the SHA-256 of every field except the load average."""
        return self._hash_without("load_average")

    @cached_property
    def machine(self) -> str:
        """The same without the commit: what decides numbers beside the code.

        The code that a cell reaches has a hash of its own, and most commits change none of it.
        """
        return self._hash_without("load_average", "git_revision", "git_dirty")

    def _hash_without(self, *names: str) -> str:
        facts = {name: value for name, value in asdict(self).items() if name not in names}
        canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, object]:
        """Plain data for `environments/<id>.json`."""
        return {"id": self.id, **asdict(self)}


def commit_in_words(facts: Mapping[str, object]) -> str:
    """The commit of stored facts, and whether files differed from it; empty where none is known."""
    changed = " with uncommitted changes" if facts.get("git_dirty") else ""
    return f"{str(facts.get('git_revision') or '')[:10]}{changed}".strip()


def collect(threads: int) -> Environment:
    """Ask this machine for its facts.

    Torch is never imported here: its facts (GPU, vector instructions) are taken only from a
    process that has loaded it. Collect in such a process, or ids differ by these fields.

    Args:
        threads: Threads that one cell may use.
    """
    revision, dirty = _git_state()
    return Environment(
        cpu=_cpu_model(),
        physical_cores=psutil.cpu_count(logical=False) or 0,
        logical_cores=psutil.cpu_count(logical=True) or 0,
        memory_bytes=psutil.virtual_memory().total,
        platform=platform.platform(),
        python=platform.python_version(),
        packages=_package_versions(),
        threads=threads,
        git_revision=revision,
        git_dirty=dirty,
        load_average=round(psutil.getloadavg()[0], 2),
        **_torch_facts(),
    )


def _cpu_model(facts: Path = CPU_FACTS) -> str:
    """The name of the processor, with the numbers of its generation.

    A virtual machine often hides all of the name but that of a family that has sold for ten years.
    """
    try:
        lines = facts.read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    found: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    name = found.get("model name") or platform.machine()
    numbers = [f"{key} {found[key]}" for key in GENERATION if found.get(key)]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def _package_versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _torch_facts() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    facts: dict[str, Any] = {
        "aten_cpu_capability": str(torch.backends.cpu.get_cpu_capability()),
        "torch_settings": _torch_settings(torch),
    }
    if torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability()
        facts["gpu"] = str(torch.cuda.get_device_name())
        facts["gpu_capability"] = f"{major}.{minor}"
        facts["gpu_driver"] = _output(
            "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"
        )
    return facts


def _torch_settings(torch: Any) -> dict[str, str]:
    """Switches that change numbers or times; half precision always trains under autocast."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    kinds = ("flash", "mem_efficient", "cudnn", "math")
    fused = [kind for kind in kinds if getattr(cuda, f"{kind}_sdp_enabled")()]
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_tf32": str(cudnn.allow_tf32),
        "cudnn_benchmark": str(cudnn.benchmark),
        "cudnn_deterministic": str(cudnn.deterministic),
        "deterministic_algorithms": str(torch.are_deterministic_algorithms_enabled()),
        "sdpa_back_ends": ", ".join(fused),
        "bfloat16_training": "autocast, parameters in float32",
    }


def _git_state() -> tuple[str, bool | None]:
    """Commit of this project, and whether files differ from it.

    Only of a checkout of its own: the repository in which an installation happens to lie, or the
    one that an environment variable names, is somebody else's.
    """
    git = ("git", "--no-optional-locks", "-C", str(PROJECT))
    top = _output(*git, "rev-parse", "--show-toplevel")
    own = top != "" and Path(top).resolve() == PROJECT.resolve()
    revision = _output(*git, "rev-parse", "HEAD") if own else ""
    if not revision:
        return "", None
    # Without optional locks, a run in the background never blocks a commit of its user.
    changed = _asked(*git, "status", "--porcelain")
    return revision, None if changed is None else bool(changed)


def _output(*command: str) -> str:
    """First line a program prints; empty if it fails or is not installed."""
    return _asked(*command) or ""


def _asked(*command: str) -> str | None:
    """First line a program prints; None if it fails or is not installed."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            errors="replace",
            env={**_without_git(os.environ), "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.partition("\n")[0].strip()


def _without_git(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables without those that lead git to another repository."""
    return {name: value for name, value in variables.items() if not name.startswith("GIT_")}
