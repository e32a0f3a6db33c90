"""TitledChunker: the document's title before every chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, NamedTuple

from rag_splitters.chunkers.content_aware import ContentAwareChunker
from rag_splitters.contract.registry import Nested
from rag_splitters.contract.sized import CompositeChunker, unit_of
from rag_splitters.meaning.situating import heading_contexts, shorten
from rag_splitters.span import Source, Span
from rag_splitters.structure.outline import Outline, title_of
from rag_splitters.text.sizing import text_length


class TitledChunker(CompositeChunker):
    """Puts the document's title before every chunk but the first, so that it keeps its context.

    Use it if chunks from the middle of a document do not say what they are about. The title is the
    metadata's `title`, else that of the front matter, else the document's first heading, else the
    `title` that you pass; without any of them, chunks stay as they are. The title counts towards
    the inner chunker's size. It is shortened to 200 characters, and to what fills half of a chunk.

    Rewrites: `start` and `end` are those of the chunk without its title. If the inner chunker
    rewrites a chunk, the title is put before the rewritten text.

    Raises ValueError if `chunker` is not a chunker.

    >>> chunker = TitledChunker(chunker=ContentAwareChunker(chunk_size=25))
    >>> [chunk.text for chunk in chunker.chunk("# Cats\\n\\nThey sleep.\\n\\nThey hunt.")]
    ['# Cats\\n\\nThey sleep.', 'Cats\\n\\nThey hunt.']
    """

    strategy: ClassVar[str] = "titled"

    chunker: Nested = ContentAwareChunker()
    """The chunker that cuts the text; the default drops the tags and the menus of HTML."""

    title: str | None = None
    """Title of documents that have none of their own; None: they get no title."""

    include_headings: bool = False
    """Whether to add the headings above a chunk to the title, as in "Tea > Green"."""

    def spans_fit(self, spans: Sequence[Span], text: str) -> bool:
        return self.resized().chunker.spans_fit(spans, text)

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        resized, length = self.resized(), partial(text_length, length_function=unit_of(self))
        titles = [resized._titles(source) for source in sources]
        prefixed = [
            replace(source, prefix=source.prefix + max(own.prefixes.values(), key=length))
            for source, own in zip(sources, titles, strict=True)
        ]
        plans = await resized.chunker.plan(prefixed)
        return [
            list(resized._with_titles(source, own, spans))
            for source, own, spans in zip(sources, titles, plans, strict=True)
        ]

    def _titles(self, source: Source) -> _Titles:
        """Return the title of a document, its outline, and what to put before chunks."""
        text, metadata = source.text, source.metadata
        outline = Outline.of(text, metadata=metadata) if self.include_headings else Outline("", [])
        title = {"title": title_of(text, metadata) or self.title or ""}

        def fits(words: str) -> bool:
            return self.chunker.fits(source.prefix + 2 * f"{words}\n\n")

        below = [Span(heading.start + 1, heading.end) for heading in outline.headings]
        contexts = heading_contexts(outline, title, [Span(0, 0), *below])
        short = {each: shorten(each, fits) for each in dict.fromkeys(contexts)}
        prefixes = {context: f"{each}\n\n" if each else "" for context, each in short.items()}
        return _Titles(title, outline, prefixes)

    def _with_titles(
        self, source: Source, titles: _Titles, spans: Sequence[Span]
    ) -> Iterator[Span]:
        """Put the title before each chunk but the first, or one that is too big for it.

        That can only be a single grapheme cluster.
        """
        title, outline, prefixes = titles
        contexts = heading_contexts(outline, title, spans)
        for number, (span, context) in enumerate(zip(spans, contexts, strict=True)):
            prefix = prefixes.get(context, "") if number else ""
            content = prefix + span.text_of(source.text)
            if prefix and self.chunker.fits(source.prefix + content):
                headings = span.headings or outline.above(span.start)
                yield replace(span, content=content, headings=headings)
            else:
                yield span


class _Titles(NamedTuple):
    """The title of a document, as metadata, its outline, and its prefixes by their contexts."""

    title: Mapping[str, str]
    outline: Outline
    prefixes: Mapping[str, str]
