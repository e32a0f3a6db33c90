"""How much text a query returns: its budget, and fitting results into a number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from rag_splitters.ids import chunk_id
from rag_splitters.parent_child.options import Query
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.results import read_matches
from rag_splitters.text.origin import places_of
from rag_splitters.text.sentences import sentence_spans
from rag_splitters.text.sizing import sizer, text_length

RESULT_SIZE = 500
"""Characters of a passage on average, for queries that say how many results they want."""
_TOKEN_SIZE = 4  # characters; a guess


def count_tokens(text: str) -> int:
    """Return how many tokens a text has, as `length_function="tokens"` counts them."""
    return text_length(text, "tokens")


@dataclass(slots=True)
class Budget:
    """How much text the passages of a query may have together."""

    room: int
    """What is left, in units of `measure`."""
    max_results: int
    measure: Callable[[str], int]

    @classmethod
    def of(cls, query: Query) -> Budget:
        """Return the budget of a query: its tokens, or 500 characters for each result."""
        if query.max_tokens is not None:
            return cls(query.max_tokens, query.limit, count_tokens)
        return cls(RESULT_SIZE * query.limit, query.limit, len)

    @property
    def characters(self) -> int:
        """About how many characters there is room for."""
        return self.room if self.measure is len else self.room * _TOKEN_SIZE

    def hold(self, sizes: Iterable[int]) -> None:
        """Make room for children of these sizes in any case."""
        self.room = max(self.room, sum(sizes))


def limit_results(query: Query, results: Sequence[Entry]) -> list[Entry]:
    """Return as many of the best results as a query asks for."""
    results = results[: query.limit]
    return list(results) if query.max_tokens is None else fit_results(results, query.max_tokens)


def fit_results(results: Sequence[Entry], max_tokens: int) -> list[Entry]:
    """Return the best results that fit into a budget together.

    A result that does not fit is shortened to whole sentences around its best match or, if the
    match itself does not fit, left out. The first is always returned, with as many sentences as
    fit, and with one at least.

    >>> tea = Entry("Boil the water. Pour it over the leaves. Wait.", {})
    >>> [entry.text for entry in fit_results([tea, tea], 18)]
    ['Boil the water. Pour it over the leaves. Wait.', 'Boil the water.']
    """
    fitted: list[Entry] = []
    for result in results:
        size = count_tokens(result.text)
        if size > max_tokens:
            shortened = _shorten(result, max_tokens, must_fit=bool(fitted))
            if shortened is None:
                continue
            result, size = shortened, count_tokens(shortened.text)
        fitted.append(result)
        max_tokens -= size
        if max_tokens <= 0:
            break
    return fitted


def _shorten(result: Entry, max_tokens: int, *, must_fit: bool) -> Entry | None:
    """Return the sentences around the best match that fit; None if that does not fit but must."""
    text, measure = result.text, sizer("tokens")(result.text)
    spans = sentence_spans(text)
    start, end = _best_match(result)
    inside = [n for n, span in enumerate(spans) if span[0] < end and start < span[1]] or [0]
    first, last = inside[0], inside[-1]

    def fits(first: int, last: int) -> bool:
        return measure.length(spans[first][0], spans[last][1]) <= max_tokens

    while not fits(first, last) and first < last and not must_fit:
        last -= 1
    if must_fit and not fits(first, last):
        return None
    while last + 1 < len(spans) and fits(first, last + 1):
        last += 1
    while first > 0 and fits(first - 1, last):
        first -= 1
    return _part(result, spans[first][0], spans[last][1])


def _best_match(result: Entry) -> tuple[int, int]:
    """Return where in a result its best match stands; its beginning if that is not known."""
    matches = read_matches(result.metadata)
    span = result.span
    keys = {"start_index", "end_index"}
    if (
        span is None
        or span[1] - span[0] != len(result.text)
        or not matches
        or keys - set(matches[0])
    ):
        return 0, 1
    return matches[0]["start_index"] - span[0], matches[0]["end_index"] - span[0]


def _part(result: Entry, start: int, end: int) -> Entry:
    """Return a part of a result, with its own positions, pages, lines and id."""
    text, metadata, span = result.text[start:end], dict(result.metadata), result.span
    if span is not None and span[1] - span[0] == len(result.text):
        metadata |= places_of(metadata, result.text, start, end)
        metadata |= {"start_index": span[0] + start, "end_index": span[0] + end}
    new_id = None if result.id is None else chunk_id(result.id, start, end, text)
    return replace(result, text=text, metadata=metadata, id=new_id)
