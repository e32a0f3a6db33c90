"""HierarchicalChunker: a document as a tree of chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Literal

from typing_extensions import Self

from rag_splitters.contract.sized import SizedChunker
from rag_splitters.errors import InputError
from rag_splitters.span import Source, Span
from rag_splitters.structure.blocks import Format
from rag_splitters.structure.blocks.layout import pack_blocks
from rag_splitters.structure.blocks.tree import Node, family, merged_units, sections
from rag_splitters.structure.document import Document, read_document
from rag_splitters.structure.outline import Outline
from rag_splitters.text.boundaries import line_start
from rag_splitters.text.sizing import Sizes, sizer, text_length


class HierarchicalChunker(SizedChunker):
    """Cuts a document into a tree: document, sections, subsections, paragraphs.

    Use it if small chunks are searched and large ones are read, for example by a retriever that
    merges children into their parents. The leaves are paragraphs (with the heading above them),
    whole lists and quotes, tables and code. A leaf smaller than a tenth of `chunk_size` joins a
    neighbour in its section if both fit, and a lead-in such as "You need:" joins what follows it. A
    leaf that is larger than `chunk_size` is cut as in `ContentAwareChunker`. With `chunk_sizes`,
    the tree has one level for each size instead, and each chunk of a level is cut into chunks of
    the next: whole sections if they fit, else finer parts.

    Metadata: `headings` above the chunk, the outermost first; `level`, 0 for the document; with
    `emit="all"` also `parent_id`, the id of the parent. Parents come before their children and
    contain them. No two chunks have the same span: a parent that consists of a single child is left
    out. Only leaves overlap, and with `emit="all"` not beyond the start of the parent.

    Rewrites: HTML becomes plain text, as in `ContentAwareChunker`, which also says what is dropped.

    Raises ValueError if `chunk_sizes` do not decrease from level to level, or if `chunk_size` is
    not the last of them.

    >>> text = "# Tea\\n\\nBoil water.\\n\\nWait.\\n\\n# Milk\\n\\nIf you like."
    >>> for chunk in HierarchicalChunker(emit="all", chunk_size=50).chunk(text)[1:]:
    ...     print(chunk.metadata["level"], repr(chunk.text))
    1 '# Tea\\n\\nBoil water.\\n\\nWait.'
    2 '# Tea\\n\\nBoil water.'
    2 'Wait.'
    2 '# Milk\\n\\nIf you like.'
    """

    strategy: ClassVar[str] = "hierarchical"

    format: Format = "auto"
    """Format of the text, such as "markdown", "html", "rst" or "text"; "auto" detects it from the
    metadata and the text."""

    section_keywords: tuple[str, ...] = ()
    """Words that begin a heading in plain text, in addition to "Chapter", "Section" and so on."""

    chunk_sizes: tuple[int, ...] | None = None
    """Maximum chunk size of each level, the outermost first, in units of `length_function`; None:
    one level for the document, for each depth of headings, and for the paragraphs."""

    emit: Literal["leaves", "all"] = "leaves"
    """Whether to return only the "leaves", or the chunks of "all" levels."""

    main_content_only: bool = True
    """Whether to drop the menus, sidebars, banners and footers of an HTML page."""

    @classmethod
    def implied_parameters(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """`chunk_size` from the last of `chunk_sizes`; no levels if only `chunk_size` is passed."""
        sizes = parameters.get("chunk_sizes")
        if sizes and isinstance(sizes, (list, tuple)):
            leaf_size = {"chunk_size": sizes[-1]}
            return leaf_size | super().implied_parameters(leaf_size)
        implied = super().implied_parameters(parameters)
        return {**implied, "chunk_sizes": None} if "chunk_size" in parameters else implied

    def check_parameters(self) -> None:
        super().check_parameters()
        sizes = self.chunk_sizes
        if not all(keyword.strip() for keyword in self.section_keywords):
            raise InputError(
                f"section_keywords must not be blank, got {list(self.section_keywords)}"
            )
        if sizes is None:
            return
        if not sizes or any(one <= other for one, other in pairwise(sizes)):
            raise InputError(f"chunk_sizes must decrease from level to level, got {list(sizes)}")
        if sizes[-1] != self.chunk_size:
            raise InputError(
                f"chunk_size must be the last of chunk_sizes ({sizes[-1]}), got {self.chunk_size}"
            )

    def fits(self, content: str) -> bool:
        if self.emit == "leaves":
            return super().fits(content)
        if self.chunk_sizes is None:
            return True
        return text_length(content, self.length_function) <= self.chunk_sizes[0]

    def has_room_after(self, prefix: str) -> bool:
        return super().fits(f"{prefix} x")  # the leaves are the smallest chunks

    def spans_fit(self, spans: Sequence[Span], text: str) -> bool:
        if self.emit == "leaves":
            return super().spans_fit(spans, text)
        parents = {span.parent for span in spans}
        for number, span in enumerate(spans):
            size = self.chunk_size if number not in parents else None
            if self.chunk_sizes is not None and span.level is not None:
                size = self.chunk_sizes[span.level]
            if size and text_length(span.text_of(text), self.length_function) > size:
                return False
        return True

    def with_room_for(self, prefix: str) -> Self:
        less = super().with_room_for(prefix)
        if self.chunk_sizes is None:
            return less
        reserve = self.chunk_size - less.chunk_size
        sizes = tuple(size - reserve for size in self.chunk_sizes)
        return less.model_copy(update={"chunk_sizes": sizes})

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        return [self._spans(source.text, source.metadata) for source in sources]

    def _spans(self, text: str, metadata: Mapping[str, Any]) -> list[Span]:
        document = read_document(
            text,
            self.format,
            metadata,
            keywords=self.section_keywords,
            main_content_only=self.main_content_only,
        )
        return document.in_source(self._tree(document))

    def _tree(self, document: Document) -> list[Span]:
        """Cut a document into a tree, without leaves that hold no text."""
        text, blocks = document.text, document.blocks
        outer, boundaries = [], []
        if self.chunk_sizes is None:
            outer = sections(blocks)
            measure = sizer(self.length_function)(text)
            starts = merged_units(text, blocks, measure, self.chunk_size)
            boundaries = [line_start(text, begin) for begin in starts]
        for level, size in enumerate((self.chunk_sizes or ())[:-1]):
            sizes = Sizes(size, 0, self.length_function)
            pieces = pack_blocks(text, blocks, sizes, required=list(filter(None, boundaries)))
            outer += [Node(piece.start, piece.end, level) for piece in pieces]
            boundaries = [piece.start for piece in pieces]
        leaves = pack_blocks(
            text,
            blocks,
            self.sizes,
            required=list(filter(None, boundaries)),
            without_overlap_at=sorted(node.start for node in outer) if self.emit == "all" else (),
        )
        leaves = list(filter(document.holds_text, leaves))
        if self.chunk_sizes is None and leaves:
            outer[0] = replace(outer[0], start=leaves[0].start)  # with its indentation
        return self._place(leaves, outer, document.outline)

    def _place(self, leaves: list[Span], outer: list[Node], outline: Outline) -> list[Span]:
        """Give the chunks their headings, levels and parents."""
        begins = [leaf.own for leaf in leaves]
        nodes = [
            Node(leaf.start, leaf.end, level + 1, True)
            for leaf, level in zip(leaves, _levels(begins, outer), strict=True)
        ]
        if self.emit == "leaves":
            pairs = zip(nodes, begins, strict=True)
            return [_span(node, outline.above(begin, node.end)) for node, begin in pairs]
        own = dict(zip(nodes, begins, strict=True))
        return [
            _span(part, outline.above(own.get(part, part.start), part.end), parent)
            for part, parent in family([*outer, *nodes])
        ]


def _levels(positions: Iterable[int], outer: list[Node]) -> Iterator[int]:
    """Yield the level of the innermost node around each of the sorted positions, or -1."""
    waiting = sorted(outer, key=lambda node: (-node.start, node.end, -node.level))
    above: list[Node] = []
    for position in positions:
        while waiting and waiting[-1].start <= position:
            above.append(waiting.pop())
        while above and above[-1].end <= position:
            above.pop()
        yield above[-1].level if above else -1


def _span(part: Node, headings: Sequence[str], parent: int | None = None) -> Span:
    return Span(part.start, part.end, headings=tuple(headings), level=part.level, parent=parent)
