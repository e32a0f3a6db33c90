"""DoclingChunker: any strategy as a Docling chunker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from docling_core.transforms.chunker.base import BaseChunk, BaseChunker
from docling_core.transforms.chunker.doc_chunk import DocChunk, DocMeta
from docling_core.types.doc.document import DoclingDocument, FloatingItem
from pydantic import ConfigDict, Field

from rag_splitters.chunkers.content_aware import ContentAwareChunker
from rag_splitters.contract.registry import Nested
from rag_splitters.docling.docling_text import DoclingText, source_of
from rag_splitters.parameters.messages import plain_errors
from rag_splitters.span import Span
from rag_splitters.structure.outline import Outline


class DoclingChunker(BaseChunker):
    """Cuts a `DoclingDocument` with any of our strategies, as Docling's own chunkers do.

    Use it instead of Docling's `HybridChunker` or `HierarchicalChunker`. Each chunk's `meta` has
    the items that it was made from, with their labels, pages and boxes, the `headings` above it,
    the `captions` of tables and pictures that are not in its text, and the document's `origin`. The
    text is Markdown: see `DoclingText`. Sizes are those of the strategy, and do not include the
    text that `contextualize` adds.

    Raises ValueError if `chunker` is not a chunker or the configuration of one, or for an unknown
    parameter.

    >>> from docling_core.types.doc.document import DocItemLabel, DoclingDocument
    >>> document = DoclingDocument(name="note")
    >>> _ = document.add_heading("Tea", level=1)
    >>> _ = document.add_text(DocItemLabel.TEXT, "Boil water.")
    >>> (chunk,) = DoclingChunker().chunk(document)
    >>> chunk.meta.headings, [item.label.value for item in chunk.meta.doc_items]
    (['Tea'], ['section_header', 'text'])
    """

    model_config = ConfigDict(extra="forbid")

    chunker: Nested = Field(default_factory=ContentAwareChunker)
    """The strategy."""

    if not TYPE_CHECKING:  # type checkers see the signature that pydantic makes of the field

        def __init__(self, **parameters: Any) -> None:
            with plain_errors(type(self)):
                super().__init__(**parameters)

    def chunk(self, dl_doc: DoclingDocument, **kwargs: Any) -> Iterator[BaseChunk]:
        """Cut a document into chunks.

        Parameters:
            dl_doc: the document.
            kwargs: ignored; Docling's own chunkers have options here.

        Raises: whatever the strategy raises.
        """
        whole = DoclingText.of(dl_doc)
        outline = Outline(whole.text, whole.headings)
        (spans,) = self.chunker.split([source_of(whole, dl_doc)])
        for span in spans:
            yield _doc_chunk(span, whole, outline, dl_doc)

    def contextualize(self, chunk: BaseChunk) -> str:
        """Return a chunk's text after its headings and captions, if the text does not hold them.

        >>> from docling_core.types.doc.document import DoclingDocument
        >>> document = DoclingDocument(name="note")
        >>> _ = document.add_heading("Tea", level=1)
        >>> (chunk,) = DoclingChunker().chunk(document)
        >>> DoclingChunker().contextualize(chunk)
        '## Tea'
        """
        if not isinstance(chunk, DocChunk):
            return super().contextualize(chunk)
        lines = {line.lstrip("# ").strip() for line in chunk.text.splitlines()}
        headings = [each for each in chunk.meta.headings or [] if each not in lines]
        return self.delim.join([*headings, *_captions(chunk.meta), chunk.text])


def _doc_chunk(
    span: Span, whole: DoclingText, outline: Outline, document: DoclingDocument
) -> DocChunk:
    text, items = span.text_of(whole.text), whole.items_between(span.start, span.end)
    captions = [
        caption
        for item in items
        if isinstance(item, FloatingItem)
        and (caption := item.caption_text(document).strip())
        and caption not in text
    ]
    values: dict[str, Any] = {
        "doc_items": list({item.self_ref: item for item in items}.values()),
        "headings": list(outline.above(span.start, span.end)) or None,
        "captions": captions or None,
        "origin": document.origin,
    }
    return DocChunk(text=text, meta=DocMeta(**values))


def _captions(meta: DocMeta) -> list[str]:
    """Return the captions, without Docling's warning about access to this attribute."""
    return list(meta.__dict__.get("captions") or [])
