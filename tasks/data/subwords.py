"""Byte-pair vocabularies, trained on the training part alone and kept in the cache."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.api.cache import cache_folder, keep
from bench.api.code_of_data import code_of
from bench.api.errors import InvalidConfig
from tasks.data.corpus import ParallelCorpus

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")
_REVISION = 1


@dataclass(frozen=True, kw_only=True)
class SubwordConfig:
    """What a vocabulary depends on besides its text."""

    size: int = 3000
    """Entries, the four special tokens included; a small text may fill fewer."""
    lowercase: bool = True
    """Lower-case the text before anything else, in training and in use."""

    def __post_init__(self) -> None:
        if self.size <= len(SPECIAL_TOKENS):
            raise InvalidConfig(
                f"subwords: size must exceed the {len(SPECIAL_TOKENS)} special tokens, "
                f"got {self.size}"
            )


class Subwords:
    """One trained vocabulary: lines to ids and back.

    Text that looks like a special token is text: the line "<eos>" never becomes the id 2.
    """

    def __init__(self, tokenizer: "Tokenizer", *, identity: str = "") -> None:
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self.hash = identity
        """Names the training text and the settings; empty for a vocabulary from elsewhere."""

    @property
    def size(self) -> int:
        """Entries, the special tokens included; ids lie below it."""
        return int(self._tokenizer.get_vocab_size())

    def encode_lines(
        self, lines: Iterable[str], *, bos: bool = False, eos: bool = False
    ) -> list[list[int]]:
        """Turn each line into ids, with the begin and end of sentence where asked."""
        before, after = [BOS] * bos, [EOS] * eos
        encoded = self._tokenizer.encode_batch_fast(list(lines))
        return [[*before, *line.ids, *after] for line in encoded]

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into text: up to the first end of sentence, without padding and begin."""
        kept = list(ids)
        if EOS in kept:
            kept = kept[: kept.index(EOS)]
        kept = [index for index in kept if index not in (PAD, BOS)]
        return str(self._tokenizer.decode(kept, skip_special_tokens=False))

    def to_json(self) -> str:
        """Return the whole vocabulary as the tokenizers library writes it."""
        return str(self._tokenizer.to_str())


def corpus_subwords(
    corpus: ParallelCorpus,
    languages: Sequence[str],
    config: SubwordConfig | None = None,
    *,
    cache_dir: Path | None = None,
) -> Subwords:
    """Return the vocabulary of `languages` over the training part of `corpus` alone.

    One language gives its own vocabulary; several give a joint one. The first call trains, later
    calls read the cache.
    """
    lines = [line for language in languages for line in corpus.train[language]]
    return cached_subwords(lines, config, cache_dir=cache_dir)


def cached_subwords(
    lines: Sequence[str], config: SubwordConfig | None = None, *, cache_dir: Path | None = None
) -> Subwords:
    """Load the vocabulary of these lines and settings, or train and store it.

    A stored file that cannot be read is trained anew: a cache holds nothing of its own.
    """
    config = config or SubwordConfig()
    identity = _identity(lines, config)
    path = cache_folder(cache_dir) / "subwords" / f"{identity[:16]}.json"
    stored = _load(path, identity)
    if stored is not None:
        return stored
    trained = train_subwords(lines, config)
    envelope = {"identity": identity, "tokenizer": json.loads(trained.to_json())}
    envelope["digest"] = _digest(envelope)
    keep(path, json.dumps(envelope, ensure_ascii=False).encode())
    return Subwords(trained._tokenizer, identity=identity)


def train_subwords(lines: Sequence[str], config: SubwordConfig | None = None) -> Subwords:
    """Train a vocabulary: words are split at spaces, each space belongs to the word after it."""
    from tokenizers import (  # noqa: PLC0415
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        trainers,
    )

    config = config or SubwordConfig()
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL_TOKENS[UNK]))
    if config.lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.BpeTrainer(
        vocab_size=config.size, special_tokens=list(SPECIAL_TOKENS), show_progress=False
    )
    tokenizer.train_from_iterator(lines, trainer, length=len(lines))
    return Subwords(tokenizer)


def _identity(lines: Sequence[str], config: SubwordConfig) -> str:
    """Hash the text, the settings, the code, and the library that decides between equal merges."""
    text = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    depends = {
        "revision": _REVISION,
        "code": code_of(train_subwords),
        "lines": len(lines),
        "text": text,
        "tokenizers": version("tokenizers"),
        **asdict(config),
    }
    canonical = json.dumps(depends, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _load(path: Path, identity: str) -> Subwords | None:
    from tokenizers import Tokenizer  # noqa: PLC0415

    try:
        envelope: dict[str, Any] = json.loads(path.read_bytes())
        if envelope["identity"] != identity or envelope["digest"] != _digest(envelope):
            return None
        tokenizer = Tokenizer.from_str(json.dumps(envelope["tokenizer"], ensure_ascii=False))
    except Exception:  # noqa: BLE001  the library has one class for all its errors, `Exception`
        return None
    return Subwords(tokenizer, identity=identity)


def _digest(envelope: Mapping[str, Any]) -> str:
    """Tells whether a stored vocabulary is whole."""
    text = json.dumps(envelope["tokenizer"], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
