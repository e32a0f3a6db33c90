"""TitledChunker: the title before every chunk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from rag_splitters.chunker import Chunker, Nested
from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.span import Span
from rag_splitters.structure.outline import Outline

__all__ = ["TitledChunker"]


class TitledChunker(Chunker):
    """Puts the document's title before every chunk but the first, so that it keeps its context.

    The title is the metadata's `title`, else the document's first heading (Markdown or HTML), else
    the one that is given; without any, the chunks stay as they are. The title counts towards the
    inner chunker's size; one longer than half of that is shortened. Rewrites: `start` and `end`
    are those of the chunk without its title. Use it where chunks from the middle of a document do
    not say what they are about.

    If the inner chunker rewrites a chunk, the title stands before the rewritten text.

    Raises: ValueError if `chunker` is not a chunker.

    >>> chunker = TitledChunker(chunker=RecursiveChunker(chunk_size=20))
    >>> [chunk.text for chunk in chunker.chunk("# Cats\\n\\nThey sleep.\\n\\nThey hunt.")]
    ['# Cats', 'Cats\\n\\nThey sleep.', 'Cats\\n\\nThey hunt.']
    """

    rewrites: ClassVar[bool] = True

    chunker: Nested = RecursiveChunker()
    """What cuts the text."""

    title: str | None = None
    """The title of documents that have none of their own."""

    include_headings: bool = False
    """Put the headings that a chunk stands under behind the title?"""

    def spans(self, text: str) -> list[Span]:
        return self.spans_of_documents([text], [{}])[0]

    def spans_many(self, texts: Iterable[str]) -> list[list[Span]]:
        return [self.spans(text) for text in texts]

    def spans_of_documents(
        self, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]]
    ) -> list[list[Span]]:
        pairs = zip(texts, metadatas, strict=True)
        return [self._spans(text, metadata) for text, metadata in pairs]

    async def aspans_of_documents(
        self, texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]]
    ) -> list[list[Span]]:
        return await asyncio.to_thread(self.spans_of_documents, texts, metadatas)

    def _spans(self, text: str, metadata: Mapping[str, Any]) -> list[Span]:
        outline = Outline.of(text, metadata=metadata)
        title = metadata.get("title") or self.title
        if outline.headings and not metadata.get("title"):
            title = outline.title
        paths = outline.paths if self.include_headings else []
        reserve = max((self._prefix(title, path) for path in [(), *paths]), key=len)
        titled: list[Span] = []
        for _ in range(8):  # a title's length in tokens depends a little on what follows it
            inner = self.chunker.narrowed(reserve).spans_of_documents([text], [metadata])[0]
            titled = [self._titled(span, text, title, outline) for span in inner[1:]]
            if all(self.chunker.fits(span.text_of(text)) for span in titled):
                break
            reserve += " x"
        fitting = [
            span if self.chunker.fits(span.text_of(text)) else bare
            for span, bare in zip(titled, inner[1:], strict=True)
        ]
        return inner[:1] + fitting

    def _titled(self, span: Span, text: str, title: Any, outline: Outline) -> Span:
        """The span with the title before its text."""
        path = outline.above(span.start) if self.include_headings else ()
        metadata = {"headings": list(path), **span.metadata} if path else span.metadata
        content = self._prefix(title, path) + span.text_of(text)
        return Span(span.start, span.end, metadata, content)

    def _prefix(self, title: Any, path: Sequence[str]) -> str:
        """The title and the headings below it, no longer than half of a chunk."""
        below = " > ".join(heading for heading in path if heading != title)
        words = "\n".join(str(part) for part in (title, below) if part).split(" ")
        low, high = 0, len(words) + 1
        while high - low > 1:
            middle = (low + high) // 2
            is_short = self.chunker.fits(2 * (" ".join(words[:middle]) + "\n\n"))
            low, high = (middle, high) if is_short else (low, middle)
        return " ".join(words[:low]) + "\n\n" if any(words[:low]) else ""
