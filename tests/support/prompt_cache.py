"""A chat server with a prompt cache like OpenAI's: prefixes of 1,024 tokens and more, by 128."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rag_splitters.text.encodings import load_encoding
from tests.support.openai_server import OpenAIServer

_STEP, _LEAST = 128, 1024


class CachingServer(OpenAIServer):
    """Counts the input tokens of prompts, and how many of them it has read before.

    A prompt is in the cache when it has been answered, so prompts that arrive together with it do
    not find it there.
    """

    def __init__(self, answer: Callable[[str], str], delay: float = 0.0) -> None:
        super().__init__(answer)
        self.delay = delay
        self.tokens = self.cached = 0
        self._prefixes: set[int] = set()
        self._encoding: Any = load_encoding("cl100k_base")

    def usual(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        tokens = self._encoding.encode_ordinary(text_of(body["messages"][-1]["content"]))
        prefixes = list(_prefixes(tokens))
        with self._lock:
            found = [length for length, prefix in prefixes if prefix in self._prefixes]
            self.tokens += len(tokens)
            self.cached += max(found, default=0)
        time.sleep(self.delay)
        result = super().usual(path, body)
        with self._lock:
            self._prefixes.update(prefix for _, prefix in prefixes)
        return result


def text_of(content: Any) -> str:
    """The text of a message, whether it comes whole or in blocks."""
    return content if isinstance(content, str) else "".join(each["text"] for each in content)


def _prefixes(tokens: Sequence[int]) -> list[tuple[int, int]]:
    """The prefixes of a prompt that the cache can hold, as (length, hash)."""
    prefixes, digest = [], 0
    for start in range(0, len(tokens) - len(tokens) % _STEP, _STEP):
        digest = hash((digest, tuple(tokens[start : start + _STEP])))
        if start + _STEP >= _LEAST:
            prefixes.append((start + _STEP, digest))
    return prefixes


def document(characters: int) -> str:
    """A document with chapters, whose title says what "it" is."""
    parts = ["# The Zephyr Turbine\n\n"]
    size, number = 0, 0
    while size < characters:
        if number % 60 == 0:
            parts.append(f"## Chapter {number // 60 + 1}\n\n")
        stop = "\n\n" if number % 6 == 5 else " "
        parts.append(
            f"In year {1900 + number * 7 % 113} it turned {number * 31 % 997} times, and the "
            f"keeper of station {number * 13 % 89} wrote that {number * 17 % 61} blades were new."
            + stop
        )
        size += len(parts[-1])
        number += 1
    return "".join(parts)[:characters]
