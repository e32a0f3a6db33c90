"""TitledChunker: the document's title before every chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from rag_splitters.chunkers.content_aware import ContentAwareChunker
from rag_splitters.contract.registry import Nested
from rag_splitters.contract.sized import CompositeChunker, unit_of
from rag_splitters.meaning.situating import shorten
from rag_splitters.span import Source, Span
from rag_splitters.structure.outline import Outline, title_of
from rag_splitters.text.sizing import text_length


class TitledChunker(CompositeChunker):
    """Puts the document's title before every chunk but the first, so that it keeps its context.

    Use it if chunks from the middle of a document do not say what they are about. The title is the
    metadata's `title`, else that of the front matter, else the document's first heading, else the
    `title` that you pass; without any of them, chunks stay as they are. The title counts towards
    the inner chunker's size, and is shortened if it would fill more than half of a chunk.

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
    """Whether to add the headings above a chunk to the title."""

    def fits(self, content: str) -> bool:
        return self.resized().chunker.fits(content)

    def has_room_after(self, prefix: str) -> bool:
        return self.resized().chunker.has_room_after(prefix)

    def spans_fit(self, spans: Sequence[Span], text: str) -> bool:
        return self.resized().chunker.spans_fit(spans, text)

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        resized, length = self.resized(), partial(text_length, length_function=unit_of(self))
        titles = [resized._titles(source) for source in sources]
        prefixed = [
            replace(source, prefix=source.prefix + max(prefixes.values(), key=length))
            for source, (prefixes, _) in zip(sources, titles, strict=True)
        ]
        plans = await resized.chunker.plan(prefixed)
        return [
            spans[:1] + [resized._with_title(span, source, *own) for span in spans[1:]]
            for source, own, spans in zip(sources, titles, plans, strict=True)
        ]

    def _titles(self, source: Source) -> tuple[dict[tuple[str, ...], str], Outline]:
        """Return the text to put before chunks, by path of headings, and the outline.

        It fills at most half of the room after the prefix of the source. A title that has to be
        shortened leaves no room for headings, so a long one is measured only once.
        """
        text, metadata = source.text, source.metadata
        outline = Outline.of(text, metadata=metadata) if self.include_headings else Outline("", [])
        title = title_of(text, metadata) or self.title or ""

        def fits(words: str) -> bool:
            return self.chunker.fits(source.prefix + 2 * f"{words}\n\n")

        short = shorten(title, fits)
        prefixes: dict[tuple[str, ...], str] = {(): short}
        for path in outline.paths:
            below = " > ".join(heading for heading in path if heading != title)
            whole = "\n".join(part for part in (title, below) if part)
            prefixes[path] = shorten(whole, fits) if short == title else short
        return {path: f"{each}\n\n" if each else "" for path, each in prefixes.items()}, outline

    def _with_title(
        self, span: Span, source: Source, prefixes: Mapping[tuple[str, ...], str], outline: Outline
    ) -> Span:
        """Put the title before a chunk, unless that is one grapheme cluster and too big for it."""
        path = outline.above(span.start)
        content = prefixes[path] + span.text_of(source.text)
        if not self.chunker.fits(source.prefix + content):
            return span
        return replace(span, content=content, headings=span.headings or path)
