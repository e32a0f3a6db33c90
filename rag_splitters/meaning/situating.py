"""The context of a chunk: its title and headings, or the part of the document around it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_splitters.ids import stable_uuid
from rag_splitters.models import ModelError
from rag_splitters.models.prompts import Prompt, fill
from rag_splitters.span import Source, Span
from rag_splitters.structure.outline import Outline, title_of
from rag_splitters.text.boundaries import boundary_before, next_word

AT_ONCE = 256
"""Maximum number of prompts in memory, because each holds a part of its document."""

_CACHED_FROM = 1024
"""Minimum length, in characters, of a shared prompt that providers cache: 1,024 tokens."""

_MOST_WORDS = 100
_LONGEST_HEADING = 200  # a line of a megabyte may look like a heading

Fits = Callable[[str], bool]
"""A function that says whether a chunk with this text fits into the maximum size."""


def heading_contexts(
    outline: Outline, metadata: Mapping[str, Any], spans: Sequence[Span]
) -> Iterator[str]:
    """Yield for each chunk the title and the headings above it, without those inside it.

    Each is shortened to 200 characters.

    >>> outline = Outline.of("# Tea\\n\\n## Green\\n\\nSteep it.")
    >>> list(heading_contexts(outline, {}, [Span(0, 5), Span(7, 15), Span(17, 26)]))
    ['', 'Tea', 'Tea > Green']
    """
    starts = {heading.start for heading in outline.headings}
    title = str(metadata.get("title") or outline.declared)
    for span in spans:
        path = list(outline.above(span.start))
        if span.start in starts:
            path.pop()
        first = outline.headings[0] if outline.headings and not title else None
        if first is not None and not span.start <= first.start < span.end:
            path = [first.title, *(each for each in path if each != first.title)]
        elif title:
            path = [title, *(each for each in path if each != title)]
        yield " > ".join(map(_short, path))


def _short(heading: str) -> str:
    return heading[: boundary_before(heading, _LONGEST_HEADING)]


def window_around(text: str, span: Span, size: int | None) -> tuple[int, int]:
    """Return (start, end) of the window in which to show a chunk: `size` characters, or all.

    Windows lie on a grid of half their size, and a chunk is shown in the window whose middle is
    closest. So neighbours share a window, which a provider's prompt cache then reads only once. A
    window is enlarged for a chunk that does not fit into it.
    """
    if size is None or len(text) <= size:
        return 0, len(text)
    step = max(1, size // 2)
    middle = (span.start + span.end - size) / 2
    start = min(max(0, round(middle / step)) * step, len(text) - size)
    end = start + size
    if start:
        word = next_word(text, start, min(end, start + 200))
        start = word if word >= 0 else boundary_before(text, start)
    return min(start, span.start), max(boundary_before(text, end), span.end)


def room_for_context(fits: Fits) -> str:
    """Return a placeholder for a context: the words that fit in a third of a chunk, at most 100."""
    counts = range(1, _MOST_WORDS + 1)
    return _words(bisect_left(counts, True, key=lambda count: not fits(3 * _words(count))))


def _words(count: int) -> str:
    return "context " * count + "\n\n" if count else ""


def shorten(prefix: str, fits: Fits) -> str:
    """Shorten a title or a context to the whole words with which it fits.

    >>> shorten("All about tea", lambda words: len(words) < 12)
    'All about'
    """

    def is_too_long(end: int) -> bool:
        return not fits(prefix[:end].rstrip())

    ends = [0]
    while (word := next_word(prefix, ends[-1] + 1, len(prefix))) >= 0:
        ends.append(word)
    ends.append(len(prefix))
    count = bisect_left(ends, True, key=is_too_long)
    while count > 1 and is_too_long(ends[count - 1]):
        count -= 1
    return prefix[: ends[max(count - 1, 0)]].rstrip()


@dataclass(frozen=True, slots=True)
class ChunkToSituate:
    """A chunk in its document, which needs a context.

    `index` is the index of the document among those that are split together, `window` is the part
    of the document to show, and `headings` are the title and headings above the chunk. Chunks that
    can share a context have the same `key`.
    """

    index: int
    source: Source
    number: int
    span: Span
    window: tuple[int, int]
    headings: str
    key: str

    @property
    def document_window(self) -> tuple[int, int, int]:
        """The document and the window in it."""
        return self.source.number, *self.window

    def __str__(self) -> str:
        return f"chunk {self.number} (characters {self.span.start} to {self.span.end})"


class Situations:
    """The chunks of some documents, and the contexts that they have so far.

    Parameters:
        sources: the documents.
        results: the chunks of each.
        template: the prompt, with {document}, {chunk} and perhaps {headings}.
        size: number of characters of the document to show; None: all.
        model: the model's name, which is part of the keys.
        by_window: whether the text of a chunk's window and the headings are part of its key; if
            not, the document's title or first heading and its source, which an edit leaves alone.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        results: Sequence[Sequence[Span]],
        *,
        template: str,
        size: int | None,
        model: str,
        by_window: bool,
    ) -> None:
        self._template, self._size, self._model = template, size, model
        self._by_window = by_window
        self.places = [
            place
            for index, (source, spans) in enumerate(zip(sources, results, strict=True))
            for place in self._places(index, source, spans)
        ]
        self._first = {place.key: place for place in reversed(self.places)}
        self.keys = list(dict.fromkeys(place.key for place in self.places))
        self.contexts: dict[str, str | ModelError] = {}
        self._fatal: ModelError | None = None

    def _places(
        self, index: int, source: Source, spans: Sequence[Span]
    ) -> Iterator[ChunkToSituate]:
        text, by_window = source.text, self._by_window
        anchor = ""
        if not by_window:
            anchor = f"{title_of(text, source.metadata)}\n{source.metadata.get('source', '')}"
        window_keys: dict[tuple[int, int], str] = {}  # each window is hashed once
        outline = Outline.of(text, metadata=source.metadata)
        paths = heading_contexts(outline, source.metadata, spans)
        for number, (span, path) in enumerate(zip(spans, paths, strict=True)):
            window = window_around(text, span, self._size)
            if window not in window_keys:
                identity = text[slice(*window)] if by_window else anchor
                window_keys[window] = stable_uuid(
                    self._model, self._template, str(by_window), identity
                )
            parts = (path, span.text_of(text)) if by_window else (span.text_of(text),)
            key = stable_uuid(window_keys[window], *parts)
            yield ChunkToSituate(index, source, number, span, window, path, key)

    def batches(self) -> Iterator[tuple[list[str], list[Prompt]]]:
        """Yield keys and prompts for all contexts that are missing; none after a fatal error.

        The first chunk of each window is sent before the others, so that the provider's prompt
        cache holds the window when the others follow. Writing to that cache costs extra, so a
        window is not marked for it if only one context is missing there.
        """
        places = [self._first[key] for key in self.keys if key not in self.contexts]
        counts = Counter(place.document_window for place in places)
        cached: set[tuple[int, int, int]] = set()
        for start in range(0, len(places), AT_ONCE):
            first: list[tuple[str, Prompt]] = []
            others: list[tuple[str, Prompt]] = []
            for place in places[start : start + AT_ONCE]:
                prompt = self._prompt(place)
                if counts[place.document_window] == 1 or prompt.shared < _CACHED_FROM:
                    prompt = Prompt(prompt, 0)
                opens = prompt.shared > 0 and place.document_window not in cached
                cached.update([place.document_window] if opens else [])
                (first if opens else others).append((place.key, prompt))
            for batch in filter(None, (first, others)):
                if self._fatal is not None:
                    self.contexts.update((key, self._fatal) for key, _ in batch)
                    continue
                yield [key for key, _ in batch], [prompt for _, prompt in batch]

    def take(self, keys: Sequence[str], answers: Sequence[str | ModelError]) -> None:
        """Add the answers of a batch."""
        self.contexts.update(zip(keys, answers, strict=True))
        errors = (answer for answer in answers if isinstance(answer, ModelError))
        self._fatal = self._fatal or next((error for error in errors if error.fatal), None)

    def failures(self) -> list[tuple[int, str, ModelError]]:
        """Return document, chunk and error of every chunk that has no context."""
        pairs = ((place, self.contexts.get(place.key)) for place in self.places)
        return [
            (place.index, str(place), error)
            for place, error in pairs
            if isinstance(error, ModelError)
        ]

    def _prompt(self, place: ChunkToSituate) -> Prompt:
        text = place.source.text
        return fill(
            self._template,
            own=("headings", "chunk"),
            document=text[slice(*place.window)],
            headings=place.headings,
            chunk=place.span.text_of(text),
        )
