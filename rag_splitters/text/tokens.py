"""Lengths in tokens: tiktoken encodings and Hugging Face tokenizers, exact and in linear time.

A text is cut into units at boundaries where token counts add up. The count of each unit is cached,
because words repeat, and then only the two edges of a part have to be encoded.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from functools import partial
from typing import Any

import numpy as np

from rag_splitters.text.boundaries import boundary_before
from rag_splitters.text.encodings import load_encoding
from rag_splitters.text.measures import CallableMeasure, Measure, Sizer
from rag_splitters.text.surrogates import replace_surrogates, without_surrogates

_BLOCK = 20_000
"""Maximum number of characters without a boundary to pass to tiktoken, which overflows its stack on
very long white space and is superlinear on very long words."""

_PART = 12_000  # characters to cut into words at once, so that they fit in the processor's cache
_LONGEST_CACHED = 100  # characters of a unit whose count is cached
_MOST_CACHED = 500_000  # units
_SHORT = 300  # characters of a text that is encoded as one unit, such as metadata
_TOKENS = 2**32 - 1  # a unit's counts are one number: its tokens, and its characters above them

# Every pattern that tiktoken ships begins a new piece at a single space between two other
# characters, and at a CJK mark between two letters or digits, whatever stands further away.
# So counts add up at these boundaries, in the whole text and in any part of it.
_SINGLE_SPACE = re.compile(r"(?<=\S) (?=\S)")
_CJK_MARKS = "，。、；：！？"
_BORDER = re.compile(r"(?<=\S)(?= \S)|(?<=[^\W_])(?=[，。、；：！？][^\W_])")


def token_sizer(tokenizer: Any) -> Sizer:
    """Return the sizer of a tokenizer.

    Parameters:
        tokenizer: a tiktoken encoding, a `tokenizers.Tokenizer`, a transformers tokenizer, or the
            name of one ("tokens", "tokens:<name>").

    Raises: ValueError for a name that `load_encoding` does not know or cannot load offline.
    """
    if isinstance(tokenizer, str):
        tokenizer = load_encoding(tokenizer.partition(":")[2] or "cl100k_base")
    if hasattr(tokenizer, "encode_ordinary"):
        return partial(_tiktoken_measure, _Counts(tokenizer))
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(fast, "to_str"):  # a transformers tokenizer written in Python
        return partial(CallableMeasure, function=lambda part: len(tokenizer.tokenize(part)))
    return _HuggingFaceSizer(fast)


def _tiktoken_measure(counts: _Counts, text: str) -> Measure:
    plain = without_surrogates(text)
    if len(plain) < len(text):  # tiktoken, too, joins a pair of them into one character
        return CallableMeasure(text, counts.count)
    return _TiktokenMeasure(plain, counts)


# Measures


class _TiktokenMeasure(Measure):
    """Tokens by tiktoken: each unit is counted once, then only the two edges of a part."""

    def __init__(self, text: str, counts: _Counts) -> None:
        super().__init__(text)
        self._counts = counts
        self._boundaries, self._totals = counts.sums(text)

    def length(self, start: int, end: int) -> int:
        first = bisect_right(self._boundaries, start)
        last = bisect_left(self._boundaries, end - 1) - 1
        count = self._counts.count
        if first > last:
            return count(self.text[start:end]) if end > start else 0
        head = count(self.text[start : self._boundaries[first]])
        tail = count(self.text[self._boundaries[last] : end])
        return head + self._totals[last] - self._totals[first] + tail

    def furthest(self, start: int, size: int) -> int:
        boundaries, totals, text_end = self._boundaries, self._totals, len(self.text)
        first = bisect_right(boundaries, start)
        if first >= len(boundaries):
            return text_end
        end, used = self._reach(start, boundaries[first], size)
        if end < boundaries[first]:
            return end
        last = bisect_right(totals, totals[first] + size - used, lo=first) - 1
        if boundaries[last] >= text_end:
            return text_end
        boundary, budget = boundaries[last], size - used - (totals[last] - totals[first])
        if budget == 0:
            return boundary
        end, _ = self._reach(boundary, boundaries[last + 1], budget)
        # Leave a single space to what follows, unless it belongs to the cluster of a prefix mark.
        return (
            boundary
            if end <= boundary + 1 and boundary_before(self.text, boundary) == boundary
            else end
        )

    def earliest(self, end: int, size: int) -> int:
        boundaries, totals = self._boundaries, self._totals
        last = bisect_left(boundaries, end - 1) - 1
        begin = boundaries[last] if last > 0 else 0
        # A token holds at most 128 characters: a longer tail cannot fit, and is not counted.
        tail = self.length(begin, end) if end - begin <= 128 * size + 128 else size + 1
        if last <= 0 or tail > size:
            begin = max(begin, end - 128 * size - 128)
            return begin + self._earliest_in(begin, end, size)
        first = bisect_left(totals, totals[last] + tail - size, hi=last)
        if first == 0:
            return 0
        room = size - tail - (totals[last] - totals[first])
        stop, unit = boundaries[first], boundaries[first - 1]
        return unit + self._earliest_in(unit, stop, room) if room else stop

    def _earliest_in(self, start: int, end: int, size: int) -> int:
        """Return where the last `size` tokens of a part begin, counted from its start."""
        part = CallableMeasure(self.text[start:end], self._counts.count)
        return part.earliest(end - start, size)

    def _reach(self, start: int, stop: int, size: int) -> tuple[int, int]:
        """Return how far `size` tokens reach from `start` towards `stop`, and the tokens used."""
        encode, span = self._counts.encoding.encode_ordinary, 4 * size + 64
        if stop - start <= 100 and (used := self._counts.count(self.text[start:stop])) <= size:
            return stop, used
        while True:
            part = self.text[start : min(start + min(span, _BLOCK), stop)]
            tokens = encode(part)
            if len(tokens) > size:
                break
            if start + len(part) >= stop:
                return stop, len(tokens)
            if span >= _BLOCK:  # a run without a boundary: continue after this block
                end, used = self._reach(start + len(part), stop, size - len(tokens))
                return end, used + len(tokens)
            span *= 4
        return self._reach_inside(start, tokens[:size], size)

    def _reach_inside(self, start: int, tokens: list[int], size: int) -> tuple[int, int]:
        """Return how far at most `size` of these tokens reach, ending with a whole character."""
        encoding = self._counts.encoding
        for number in range(len(tokens), 0, -1):
            head = encoding.decode_bytes(tokens[:number]).decode("utf-8", "ignore")
            if head and (used := len(encoding.encode_ordinary(head))) <= size:
                return start + len(head), used
        return start, 0


class _HuggingFaceSizer:
    """Measures texts with a copy of a Hugging Face tokenizer that neither truncates nor pads.

    If the user has changed the tokenizer since the last text, it is copied again.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._state: tuple[Any, ...] | None = None

    def __call__(self, text: str) -> Measure:
        tokenizer = self._tokenizer
        parts = (tokenizer.normalizer, tokenizer.pre_tokenizer)
        states = [part and part.__getstate__() for part in parts]
        state = (*states, str(tokenizer.get_added_tokens_decoder()), tokenizer.get_vocab_size())
        if state != self._state:
            self._copy = type(tokenizer).from_str(tokenizer.to_str())
            self._copy.no_truncation()
            self._copy.no_padding()
            self._state = state
        return _HuggingFaceMeasure(text, self._copy)


class _HuggingFaceMeasure(Measure):
    """Tokens by a Hugging Face tokenizer, which encodes each part again."""

    def __init__(self, text: str, tokenizer: Any) -> None:
        super().__init__(replace_surrogates(text))
        self._tokenizer = tokenizer

    def length(self, start: int, end: int) -> int:
        return len(self._tokenizer.encode(self.text[start:end], add_special_tokens=False).ids)


# Counts


class _UnitCounts(dict[str, int]):
    """Cached characters and tokens of units, as `characters << 32 | tokens`."""

    def __init__(self, encoding: Any) -> None:
        super().__init__()
        self._encode = encoding.encode_ordinary

    def __missing__(self, text: str) -> int:
        if len(text) <= _LONGEST_CACHED:
            if len(self) >= _MOST_CACHED:
                self.clear()
            value = self[text] = len(text) << 32 | len(self._encode(text))
            return value
        blocks = (text[at : at + _BLOCK] for at in range(0, len(text), _BLOCK))
        return len(text) << 32 | sum(len(self._encode(block)) for block in blocks)


class _WordCounts(dict[str, int]):
    """The same for words after a space; -1 for a word that is not a unit."""

    def __init__(self, encoding: Any) -> None:
        super().__init__()
        self._encode = encoding.encode_ordinary

    def __missing__(self, word: str) -> int:
        if not _is_unit(word):
            return -1
        if len(self) >= _MOST_CACHED:
            self.clear()
        value = self[word] = (len(word) + 1) << 32 | len(self._encode(" " + word))
        return value


def _is_unit(word: str) -> bool:
    """Whether a word is short, and the spaces around it are boundaries."""
    if len(word) >= _LONGEST_CACHED or " " in word:
        return False
    return word.isalnum() or (word != "" and word.strip() == word)


class _Counts:
    """A tiktoken encoding, with the counts of every unit that it has encoded."""

    def __init__(self, encoding: Any) -> None:
        self.encoding = encoding
        self._units = _UnitCounts(encoding)
        self._words = _WordCounts(encoding)

    def count(self, text: str) -> int:
        """Count the tokens of a text of any length."""
        if len(text) <= _BLOCK:
            return self._units[text] & _TOKENS
        units = _BORDER.split(without_surrogates(text))
        return sum(self._units[unit] & _TOKENS for unit in units)

    def sums(self, text: str) -> tuple[array[int], array[int]]:
        """Return the boundaries of a text, from 0 to its end, and the tokens before each."""
        if len(text) <= _SHORT:
            return array("q", [0, len(text)]), array("q", [0, self.count(text)])
        values, start = list[Any](), 0
        while start < len(text) or not values:
            boundary = _SINGLE_SPACE.search(text, start + _PART)
            stop = boundary.start() if boundary else len(text)
            values.append(self._values(text[start:stop], start == 0))
            start = stop
        sums = np.cumsum(values[0] if len(values) == 1 else np.concatenate(values))
        return _from_zero(sums >> 32), _from_zero(sums & _TOKENS)

    def _values(self, part: str, is_first: bool) -> Any:
        """Return the counts of a part's units; every part but the first begins at a boundary."""
        if not part.isascii() and any(mark in part for mark in _CJK_MARKS):
            units = _BORDER.split(part)
            return np.fromiter(map(self._units.__getitem__, units), np.int64, len(units))
        words = (part if is_first else part[1:]).split(" ")
        values = np.fromiter(map(self._words.__getitem__, words), np.int64, len(words))
        pieces = _pieces(words, np.flatnonzero(values < 0).tolist())
        is_inside: Any = np.zeros(len(words), np.bool_)
        for first, last in pieces:
            words[first] = " ".join(words[first : last + 1])
            values[first] = self._units[" " + words[first]]
            is_inside[first + 1 : last + 1] = True
        if is_first:
            values[0] = self._units[words[0]]
        return values[~is_inside] if pieces else values


def _pieces(words: list[str], others: list[int]) -> list[tuple[int, int]]:
    """Return first and last of the words around those at `others`, between boundaries."""
    pieces: list[tuple[int, int]] = []
    for at in others:
        first = at - 1 if at > 0 and not words[at][:1].strip() else at
        last = at + 1 if at + 1 < len(words) and not words[at][-1:].strip() else at
        if pieces and first <= pieces[-1][1]:
            pieces[-1] = (pieces[-1][0], last)
        else:
            pieces.append((first, last))
    return pieces


def _from_zero(sums: Any) -> array[int]:
    """Return 0 and the running sums, in a form that is fast for `bisect`."""
    result = array("q", [0])
    result.frombytes(sums.tobytes())
    return result
