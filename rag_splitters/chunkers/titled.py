"""TitledChunker: the document's title before every chunk."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from rag_splitters.calls import together
from rag_splitters.chunkers.content_aware import ContentAwareChunker
from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.registry import Nested
from rag_splitters.span import Source, Span
from rag_splitters.structure.outline import Outline, title_of


class TitledChunker(Chunker):
    """Puts the document's title before every chunk but the first, so that it keeps its context.

    Use it if chunks from the middle of a document do not say what they are about. The title is the
    metadata's `title`, else the document's first heading, else the `title` that you pass; without
    any of them, chunks stay as they are. The title counts towards the inner chunker's size, and is
    shortened if it would fill more than half of a chunk.

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
        return self.chunker.fits(content)

    def narrowed(self, prefix: str) -> TitledChunker:
        return self.model_copy(update={"chunker": self.chunker.narrowed(prefix)})

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return await together([self._plan_one(source) for source in sources])

    async def _plan_one(self, source: Source) -> list[Span]:
        """Cut one text, and put the title before all chunks but the first."""
        text, metadata = source.text, source.metadata
        outline = Outline.of(text, metadata=metadata) if self.include_headings else Outline("", [])
        title = title_of(text, metadata) or self.title or ""
        prefixes = self._prefixes(title, outline.paths if self.include_headings else ())
        reserve = max(prefixes.values(), key=len)
        titled: list[Span] = []
        for _ in range(8):  # a title's length in tokens depends slightly on what follows it
            (inner,) = await self.chunker.narrowed(reserve).plan([source])
            titled = [self._with_title(span, text, prefixes, outline) for span in inner[1:]]
            if all(self.chunker.fits(span.text_of(text)) for span in titled):
                break
            reserve += " x"
        fitting = [
            span if self.chunker.fits(span.text_of(text)) else bare
            for span, bare in zip(titled, inner[1:], strict=True)
        ]
        return inner[:1] + fitting

    def _with_title(
        self, span: Span, text: str, prefixes: Mapping[tuple[str, ...], str], outline: Outline
    ) -> Span:
        """Put the title before the text of a span."""
        path = outline.above(span.start) if self.include_headings else ()
        content = prefixes[path] + span.text_of(text)
        return replace(span, content=content, headings=span.headings or path)

    def _prefixes(self, title: str, paths: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
        """Return the text to put before chunks, the title and headings, by path of headings.

        It fills at most half of a chunk. A title that has to be shortened leaves no room for
        headings, so a long one is measured only once.
        """
        short = self._shorten(title)
        prefixes: dict[tuple[str, ...], str] = {(): short}
        for path in paths:
            below = " > ".join(heading for heading in path if heading != title)
            whole = "\n".join(part for part in (title, below) if part)
            prefixes[path] = self._shorten(whole) if short == title else short
        return {path: f"{prefix}\n\n" if prefix else "" for path, prefix in prefixes.items()}

    def _shorten(self, heading: str) -> str:
        """Return as many whole words of a heading as fit into half of a chunk."""
        ends = [0, *(word.end() for word in re.finditer(r"\S+", heading))]
        low, high = 0, len(ends)
        while high - low > 1:
            middle = (low + high) // 2
            fits = self.chunker.fits(2 * f"{heading[: ends[middle]]}\n\n")
            low, high = (middle, high) if fits else (low, middle)
        return heading[: ends[low]]
