"""Answers of tools: labels for documents, and text within a number of tokens."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any

from rag_splitters.citations import cite
from rag_splitters.parameters.checks import whole_number
from rag_splitters.parent_child.budget import count_tokens
from rag_splitters.parent_child.records import Entry
from rag_splitters.text.origin import line_range, places_of
from rag_splitters.text.sizing import sizer

MIN_TOKENS = 200
"""The least that an answer may be limited to, so that there is room for labels and notes."""
_LONGEST_TOKEN = 128  # characters; no token of cl100k_base has more
_LONGEST_LABEL = 200  # characters
_CUT = " … [cut here: expand shows the text around a position]"


def fit(render: Callable[[int], str], count: int, max_tokens: int) -> str:
    """Return the longest of render(1) to render(count) that fits; if none does, the first one, cut.

    >>> print(fit(lambda n: "tea " * n + f"[{9000 - n} more]", 9000, 200)[-11:])
    [8805 more]
    """
    whole_number(max_tokens, "max_tokens", MIN_TOKENS)
    if is_within(render(count), max_tokens):
        return render(count)
    parts = range(1, count)
    fitting = bisect_left(parts, True, key=lambda n: not is_within(render(n), max_tokens))
    return cut(render(max(fitting, 1)), max_tokens)


def is_within(text: str, max_tokens: int) -> bool:
    """Whether a text has at most so many tokens."""
    return len(text) <= _LONGEST_TOKEN * max_tokens and count_tokens(text) <= max_tokens


def cut(text: str, max_tokens: int) -> str:
    """Return as much of a text as fits, with a note if that is not all."""
    if is_within(text, max_tokens):
        return text
    beginning = text[: _LONGEST_TOKEN * max_tokens]
    end = sizer("tokens")(beginning).furthest(0, max_tokens - count_tokens(_CUT))
    while not is_within(beginning[:end] + _CUT, max_tokens):
        end -= 1  # where both meet, there may be one token more
    return beginning[:end] + _CUT


def header(document: Entry, start: int | None = None, end: int | None = None) -> str:
    """Return a label for a document, or a part of it, and the arguments that lead to it."""
    place, metadata = f"document={quote(document.id)}", document.metadata
    if start is not None and end is not None:
        place += f", start={start}, end={end}"
        metadata = metadata | places(document, start, end)
    return f"{label(metadata)} ({place})".lstrip()


def label(metadata: Mapping[str, Any]) -> str:
    """Return a citation's label for something with this metadata."""
    text = cite([Entry("", dict(metadata))])[0].label
    return text if len(text) <= _LONGEST_LABEL else f"{text[:_LONGEST_LABEL]}…"


def places(document: Entry, start: int, end: int) -> dict[str, Any]:
    """Return the lines of a part of a document, and its pages or times if they are known.

    They are the lines of its file or, if the metadata does not say these, of its text.
    """
    text = document.text
    own = places_of(document.metadata, text, start, end)
    return {**places_of(line_range(text), text, start, end), **own}


def first_line(document: Entry) -> int:
    """Return the number of a document's first line in its file."""
    return int(places(document, 0, len(document.text)).get("line_start", 1))


def quote(value: object) -> str:
    """Return a value in JSON, as an agent passes it."""
    return json.dumps(value, ensure_ascii=False)
