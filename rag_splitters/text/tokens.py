"""Lengths in tokens: tiktoken encodings and Hugging Face tokenizers, exact and in linear time."""

from __future__ import annotations

import importlib.util
import os
import re
import threading
from bisect import bisect_left, bisect_right
from functools import partial
from pathlib import Path
from typing import Any

from rag_splitters.text.sizing import CallableMeasure, Measure, Sizer
from rag_splitters.text.token_counts import BLOCK, TokenCounts

__all__ = ["load_encoding", "token_sizer"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")

_loading = threading.Lock()


def token_sizer(tokenizer: Any) -> Sizer:
    """The sizer of a tokenizer, or of the name of one ("tokens", "tokens:<name>")."""
    if isinstance(tokenizer, str):
        tokenizer = load_encoding(tokenizer.partition(":")[2] or "cl100k_base")
    if hasattr(tokenizer, "encode_ordinary"):
        return partial(_measured, TokenCounts(tokenizer))
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(fast, "to_str"):
        return lambda text: CallableMeasure(text, lambda part: len(tokenizer.tokenize(part)))
    plain = type(fast).from_str(fast.to_str())
    plain.no_truncation()
    plain.no_padding()
    return lambda text: _HuggingFaceMeasure(text, plain)


def _measured(counts: TokenCounts, text: str) -> Measure:
    if not _is_unicode(text):
        if _SURROGATE_PAIR.search(text):  # tiktoken joins a pair to one character
            return CallableMeasure(text, counts.count)
        text = _SURROGATE.sub("\ufffd", text)  # as tiktoken does
    return _TiktokenMeasure(text, counts)


class _TiktokenMeasure(Measure):
    """Tokens by tiktoken: every unit counted once, and only the two edges of a part again."""

    def __init__(self, text: str, counts: TokenCounts) -> None:
        super().__init__(text)
        self._counts = counts
        self._borders, self._totals = counts.sums(text)

    def length(self, start: int, end: int) -> int:
        first = bisect_right(self._borders, start)
        last = bisect_left(self._borders, end - 1) - 1
        count = self._counts.count
        if first > last:
            return count(self.text[start:end]) if end > start else 0
        head = count(self.text[start : self._borders[first]])
        tail = count(self.text[self._borders[last] : end])
        return head + self._totals[last] - self._totals[first] + tail

    def furthest(self, start: int, size: int) -> int:
        borders, totals, text_end = self._borders, self._totals, len(self.text)
        first = bisect_right(borders, start)
        if first >= len(borders):
            return text_end
        end, used = self._reach(start, borders[first], size)
        if end < borders[first]:
            return end
        last = bisect_right(totals, totals[first] + size - used, lo=first) - 1
        if borders[last] >= text_end:
            return text_end
        left = size - used - (totals[last] - totals[first])
        if left == 0:
            return borders[last]
        end, _ = self._reach(borders[last], borders[last + 1], left)
        return borders[last] if end <= borders[last] + 1 else end

    def earliest(self, end: int, size: int) -> int:
        borders, totals = self._borders, self._totals
        last = bisect_left(borders, end - 1) - 1
        begin = borders[last] if last > 0 else 0
        # A token holds at most 128 characters: a longer tail cannot fit, and is not counted.
        tail = self.length(begin, end) if end - begin <= 128 * size + 128 else size + 1
        if last <= 0 or tail > size:
            return max(super().earliest(end, size), begin)
        first = bisect_left(totals, totals[last] + tail - size, hi=last)
        if first == 0:
            return 0
        room = size - tail - (totals[last] - totals[first])
        stop, unit = borders[first], borders[first - 1]
        part = _TextMeasure(self.text[unit:stop], self._counts) if room else None
        return unit + part.earliest(stop - unit, room) if part else stop

    def _reach(self, start: int, stop: int, size: int) -> tuple[int, int]:
        """How far towards `stop` `size` tokens reach from `start`, and the tokens used."""
        encode, span = self._counts.encoding.encode_ordinary, 4 * size + 64
        if stop - start <= 100 and (used := self._counts.count(self.text[start:stop])) <= size:
            return stop, used
        while True:
            part = self.text[start : min(start + min(span, BLOCK), stop)]
            tokens = encode(part)
            if len(tokens) > size:
                break
            if start + len(part) >= stop:
                return stop, len(tokens)
            if span >= BLOCK:  # a run without a border: go on behind this block
                end, used = self._reach(start + len(part), stop, size - len(tokens))
                return end, used + len(tokens)
            span *= 4
        for kept in range(size, 0, -1):
            known = self._counts.encoding.decode_bytes(tokens[:kept]).decode("utf-8", "ignore")
            if known and len(encode(known)) <= size:
                return start + len(known), len(encode(known))
        return start, 0


class _TextMeasure(Measure):
    """A short text counted by tiktoken without borders."""

    def __init__(self, text: str, counts: TokenCounts) -> None:
        super().__init__(text)
        self._counts = counts

    def length(self, start: int, end: int) -> int:
        return self._counts.count(self.text[start:end])


class _HuggingFaceMeasure(Measure):
    """Tokens by a Hugging Face tokenizer: its offsets tell where to look, a count tells exactly."""

    def __init__(self, text: str, tokenizer: Any) -> None:
        super().__init__(_SURROGATE.sub("\ufffd", text))
        self._tokenizer = tokenizer

    def length(self, start: int, end: int) -> int:
        return len(self._tokenizer.encode(self.text[start:end], add_special_tokens=False).ids)


def _is_unicode(text: str) -> bool:
    """Is it without lone surrogates? Encoding is the fastest way to know."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def load_encoding(name: str) -> Any:
    """The tokenizer of this name: a tiktoken encoding, an OpenAI model, or a tokenizer.json."""
    import tiktoken
    from tiktoken.model import encoding_name_for_model

    path = Path(name)
    if name not in tiktoken.list_encoding_names():
        if path.exists():
            from tokenizers import Tokenizer

            return Tokenizer.from_file(str(path / "tokenizer.json" if path.is_dir() else path))
        try:
            name = encoding_name_for_model(name)
        except KeyError:
            known = ", ".join(sorted(tiktoken.list_encoding_names()))
            raise ValueError(
                f"unknown tokenizer {name!r}: name a tiktoken encoding ({known}), an OpenAI model "
                "or the path of a tokenizer.json, or hand in the tokenizer itself"
            ) from None
    with _loading:
        return _load_offline(name)


def _load_offline(name: str) -> Any:
    """A tiktoken encoding from the files at hand; never from the network."""
    import tiktoken
    import tiktoken.load

    spec = importlib.util.find_spec("llama_index.core")
    bundled = next(iter(spec.submodule_search_locations or []), "") if spec else ""
    folders = {"TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"} & os.environ.keys()
    read_file = tiktoken.load.read_file
    try:
        if not folders and name in ("cl100k_base", "o200k_base", "o200k_harmony"):
            os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(bundled, "_static", "tiktoken_cache"))
        tiktoken.load.read_file = _refuse
        return tiktoken.get_encoding(name)
    except _NotAtHandError as error:
        raise ValueError(
            f"the encoding {name!r} is not at hand and is not downloaded unasked: set "
            "TIKTOKEN_CACHE_DIR to a folder that holds it (filled by running tiktoken.get_encoding"
            f"({name!r}) once where there is a network), or use cl100k_base or o200k_base"
        ) from error
    finally:
        tiktoken.load.read_file = read_file
        if not folders:
            os.environ.pop("TIKTOKEN_CACHE_DIR", None)


class _NotAtHandError(Exception):
    """tiktoken wanted to download a file."""


def _refuse(blobpath: str) -> bytes:
    raise _NotAtHandError(blobpath)
