"""Lengths in tokens: tiktoken encodings and Hugging Face tokenizers, exact and in linear time."""

from __future__ import annotations

import importlib.util
import os
import re
import threading
from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Any

import numpy as np

from rag_splitters.sizing import CallableMeasure, Measure, Sizer

__all__ = ["load_encoding", "token_sizer"]

# tiktoken overflows its stack on very long white space and is superlinear on very long words:
# it is never handed more than this many characters of a run without a border.
_BLOCK = 20_000
_CACHED_COUNTS = 500_000
_TOKENS = 2**32 - 1

# Every pattern that tiktoken ships begins a new piece at a single space between two other
# characters, and at a CJK mark between two letters or digits, whatever stands further away.
# So counts add up at these borders, in the whole text and in any part of it.
_OTHER_SPACES = [chr(code) for code in range(0x3001) if chr(code).isspace() and chr(code) != " "]
_SINGLE_SPACE = re.compile(r"(?<=\S) (?=\S)")
_CJK_MARK = re.compile("[，。、；：！？]")
_BORDER = re.compile(r"(?<=\S)(?= \S)|(?<=[^\W_])(?=[，。、；：！？][^\W_])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")

_loading = threading.Lock()


def token_sizer(tokenizer: Any) -> Sizer:
    """The sizer of a tokenizer, or of the name of one ("tokens", "tokens:<name>")."""
    if isinstance(tokenizer, str):
        tokenizer = load_encoding(tokenizer.partition(":")[2] or "cl100k_base")
    if hasattr(tokenizer, "encode_ordinary"):
        return _Encoding(tokenizer).measure
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(fast, "to_str"):
        return lambda text: CallableMeasure(text, lambda part: len(tokenizer.tokenize(part)))
    plain = type(fast).from_str(fast.to_str())
    plain.no_truncation()
    plain.no_padding()
    return lambda text: _HuggingFaceMeasure(text, plain)


def _is_singly_spaced(text: str) -> bool:
    """Does every space stand between two characters that are no white space?"""
    if "  " in text or text[:1] == " " or text[-1:] == " ":
        return False
    others = (space for space in _OTHER_SPACES if space in text)
    return not any(f"{space} " in text or f" {space}" in text for space in others)


class _Counts(dict[str, int]):
    """Characters and tokens of the units seen so far, each after a prefix; English repeats itself.

    A value is `characters << 32 | tokens`: one look-up and one array give both.
    """

    def __init__(self, encoding: Any, prefix: str) -> None:
        super().__init__()
        self._encode = encoding.encode_ordinary
        self._prefix = prefix

    def __missing__(self, unit: str) -> int:
        text = self._prefix + unit
        if len(text) <= 100:
            if len(self) >= _CACHED_COUNTS:
                self.clear()
            value = self[unit] = len(text) << 32 | len(self._encode(text))
            return value
        blocks = (text[at : at + _BLOCK] for at in range(0, len(text), _BLOCK))
        return len(text) << 32 | sum(len(self._encode(block)) for block in blocks)


class _Encoding:
    """A tiktoken encoding with the counts that it has been asked for."""

    def __init__(self, encoding: Any) -> None:
        self.encoding = encoding
        self.plain = _Counts(encoding, "")
        self.spaced = _Counts(encoding, " ")

    def measure(self, text: str) -> Measure:
        if not text.isascii() and _SURROGATE.search(text):
            if _SURROGATE_PAIR.search(text):  # tiktoken joins a pair to one character
                return CallableMeasure(text, self.count)
            text = _SURROGATE.sub("\ufffd", text)  # as tiktoken does
        return _TiktokenMeasure(text, self)

    def count(self, text: str) -> int:
        """Tokens of a text, which may be long."""
        if len(text) <= _BLOCK:
            return self.plain[text] & _TOKENS
        joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return sum(self.plain[unit] & _TOKENS for unit in _BORDER.split(joined))

    def units(self, text: str) -> tuple[Any, Any]:
        """Characters and tokens of each unit between two borders."""
        if not text.isascii() and _CJK_MARK.search(text):
            units = _BORDER.split(text)
            values = np.fromiter(map(self.plain.__getitem__, units), np.int64, len(units))
        else:
            words = text.split(" ") if _is_singly_spaced(text) else _SINGLE_SPACE.split(text)
            values = np.fromiter(map(self.spaced.__getitem__, words), np.int64, len(words))
            values[0] = self.plain[words[0]]
        return values >> 32, values & _TOKENS


class _TiktokenMeasure(Measure):
    """Tokens by tiktoken: every unit counted once, and only the two edges of a part again."""

    def __init__(self, text: str, encoding: _Encoding) -> None:
        super().__init__(text)
        self._encoding = encoding
        lengths, counts = encoding.units(text)
        self._borders = _cumulative(lengths)
        self._totals = _cumulative(counts)

    def length(self, start: int, end: int) -> int:
        first = bisect_right(self._borders, start)
        last = bisect_left(self._borders, end - 1) - 1
        count = self._encoding.count
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
        part = _TextMeasure(self.text[unit:stop], self._encoding) if room else None
        return unit + part.earliest(stop - unit, room) if part else stop

    def _reach(self, start: int, stop: int, size: int) -> tuple[int, int]:
        """How far towards `stop` `size` tokens reach from `start`, and the tokens used."""
        encode, span = self._encoding.encoding.encode_ordinary, 4 * size + 64
        if stop - start <= 100 and (used := self._encoding.count(self.text[start:stop])) <= size:
            return stop, used
        while True:
            part = self.text[start : min(start + min(span, _BLOCK), stop)]
            tokens = encode(part)
            if len(tokens) > size:
                break
            if start + len(part) >= stop:
                return stop, len(tokens)
            if span >= _BLOCK:  # a run without a border: go on behind this block
                end, used = self._reach(start + len(part), stop, size - len(tokens))
                return end, used + len(tokens)
            span *= 4
        for kept in range(size, 0, -1):
            known = self._encoding.encoding.decode_bytes(tokens[:kept]).decode("utf-8", "ignore")
            if known and len(encode(known)) <= size:
                return start + len(known), len(encode(known))
        return start, 0


class _TextMeasure(Measure):
    """A short text counted by tiktoken without borders."""

    def __init__(self, text: str, encoding: _Encoding) -> None:
        super().__init__(text)
        self._encoding = encoding

    def length(self, start: int, end: int) -> int:
        return self._encoding.count(self.text[start:end])


class _HuggingFaceMeasure(Measure):
    """Tokens by a Hugging Face tokenizer: its offsets tell where to look, a count tells exactly."""

    def __init__(self, text: str, tokenizer: Any) -> None:
        super().__init__(_SURROGATE.sub("\ufffd", text))
        self._tokenizer = tokenizer

    def length(self, start: int, end: int) -> int:
        return len(self._tokenizer.encode(self.text[start:end], add_special_tokens=False).ids)


def _cumulative(values: Any) -> array[int]:
    """0 and the running sums, in a form that `bisect` reads fast."""
    sums = array("q", [0])
    sums.frombytes(np.cumsum(values).tobytes())
    return sums


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
