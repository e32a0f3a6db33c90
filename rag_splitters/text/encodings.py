"""Tokenizers by name, from files on this machine; nothing is downloaded.

tiktoken's own loader downloads missing files, so the encodings are built here, from the files that
tiktoken has cached, that come with LlamaIndex or, for cl100k_base, that stand beside this module.
"""

from __future__ import annotations

import importlib.util
import lzma
import os
import tempfile
import threading
from base64 import b64decode
from functools import lru_cache
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any, NamedTuple

from rag_splitters.errors import InputError

_URL = "https://openaipublic.blob.core.windows.net/encodings/"


class _Vocabulary(NamedTuple):
    """A file of tokens and ranks, and the pattern that first splits a text into words."""

    file: str
    sha256: str
    pattern: str


# The patterns are those of tiktoken_ext.openai_public.
_GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_R50K = _Vocabulary(
    "r50k_base.tiktoken",
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    _GPT2_PATTERN,
)
_P50K = _Vocabulary(
    "p50k_base.tiktoken",
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    _GPT2_PATTERN,
)
_CL100K = _Vocabulary(
    "cl100k_base.tiktoken",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
)
_O200K = _Vocabulary(
    "o200k_base.tiktoken",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
_VOCABULARIES = {
    "gpt2": _R50K,  # the same tokens under another name
    "r50k_base": _R50K,
    "p50k_base": _P50K,
    "p50k_edit": _P50K,
    "cl100k_base": _CL100K,
    "o200k_base": _O200K,
    "o200k_harmony": _O200K,
}

_OURS = Path(__file__).parent
_loading = threading.Lock()


def load_encoding(name: str) -> Any:
    """Load the tokenizer of this name, without special tokens, because every text is data.

    Parameters:
        name: a tiktoken encoding or an OpenAI model; never a path, because configurations hold it.

    Raises: ValueError if the name is unknown, or if the encoding's file is not on this machine.
    """
    import tiktoken
    from tiktoken.model import encoding_name_for_model
    from tiktoken.registry import ENCODINGS

    if name not in tiktoken.list_encoding_names():
        try:
            name = encoding_name_for_model(name)
        except KeyError:
            encodings = ", ".join(sorted(tiktoken.list_encoding_names()))
            raise InputError(
                f"unknown tokenizer {name!r}: use a tiktoken encoding ({encodings}) or an OpenAI "
                "model, or pass the tokenizer itself"
            ) from None
    if name in ENCODINGS:  # it has already been loaded in this process
        return ENCODINGS[name]
    if name not in _VOCABULARIES:
        raise InputError(
            f"the encoding {name!r} comes from a tiktoken plugin, which may download files: pass "
            f"length_function=tiktoken.get_encoding({name!r})"
        )
    with _loading:
        return _build_encoding(name, _folders())


@lru_cache(maxsize=8)
def _build_encoding(name: str, folders: tuple[Path, ...]) -> Any:
    """Build a tiktoken encoding from its file in one of the folders."""
    from tiktoken import Encoding

    vocabulary = _VOCABULARIES[name]
    ranks = _read_ranks(vocabulary, folders)
    if ranks is None:
        cached = vocabulary.file.removesuffix(".tiktoken")
        raise InputError(
            f"the file of the encoding {name!r} is not on this machine, and it is not downloaded "
            "automatically: set TIKTOKEN_CACHE_DIR to a folder that holds it (to fill the folder, "
            f"run tiktoken.get_encoding({cached!r}) once with a network), or use cl100k_base"
        )
    return Encoding(name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={})


def _folders() -> tuple[Path, ...]:
    """Return the folders to search: the user's cache, else LlamaIndex's and tiktoken's."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return (Path(os.environ[variable]),) if os.environ[variable] else ()
    default = Path(tempfile.gettempdir(), "data-gym-cache")
    try:
        spec = importlib.util.find_spec("llama_index.core")
    except ModuleNotFoundError:  # LlamaIndex is not installed
        return (default,)
    packages = (spec and spec.submodule_search_locations) or ()
    return (*(Path(package, "_static", "tiktoken_cache") for package in packages), default)


def _read_ranks(vocabulary: _Vocabulary, folders: tuple[Path, ...]) -> dict[bytes, int] | None:
    """Read the rank of each token; None if no folder holds the file, complete and unchanged."""
    name = sha1((_URL + vocabulary.file).encode(), usedforsecurity=False).hexdigest()
    for path in (*(folder / name for folder in folders), _OURS / f"{vocabulary.file}.xz"):
        try:
            content = path.read_bytes()
        except OSError:
            continue
        if path.suffix == ".xz":
            content = lzma.decompress(content)
        if sha256(content).hexdigest() == vocabulary.sha256:
            lines = map(bytes.split, content.splitlines())
            return {b64decode(token): int(rank) for token, rank in lines}
    return None
