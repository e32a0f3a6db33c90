"""The guarantees of every chunker as checks, to test a chunker of your own.

    from hypothesis import given
    from rag_splitters.testing import check_chunker, hostile_texts

    @given(hostile_texts())
    def test_my_chunker_keeps_the_contract(text):
        check_chunker(MyChunker(chunk_size=20), text)

The functions raise an AssertionError that shows the chunker and the text. Only `hostile_texts`
needs Hypothesis: pip install 'rag-splitters[test]'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import regex

from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.errors import InputTypeError
from rag_splitters.span import Source, Span
from rag_splitters.structure.blocks import Block, detect_format, read_blocks
from rag_splitters.structure.signatures import find_signatures
from rag_splitters.text.leads import lead_start
from rag_splitters.text.lines import is_behind_mark, with_line_feeds
from rag_splitters.text.overlaps import clause_starts, line_starts
from rag_splitters.text.segmenters import segmenter_cuts
from rag_splitters.text.sizing import sizer
from rag_splitters.text.structure import Structure
from rag_splitters.text.unbreakable import find_unbreakable

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from langchain_core.documents import Document
    from llama_index.core.schema import BaseNode

# Strategies that Auto chooses, and that pack sentences.
_BY_SENTENCE = ("sentence", "semantic", "embedding", "cluster", "topic")
_LONGEST_HEADING = 1000  # characters
# White space with a combining mark on it is visible.
_WORD = regex.compile(r"(?:\S|\s(?=[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]))+")

HOSTILE_PIECES = (
    *("a", "b", " ", "  ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\t", "\f", "\x00", "\x0b"),
    *("word", "Longerword", "The end.", "Dr. No said so.", "Is it? Yes!", "3.14", "e.g.", "..."),
    *("The same passage again. ", "The same passage again. ", "# Heading\n", "- item\n", "1. One "),
    *("e\u0301", "\u0301", "x\u0301\u0302\u0303", " \u0301", "\u00a0", "\u2028"),
    *("\u3000", "\ufeff"),
    *("👩‍👩‍👧", "👍🏽", "🇩🇪", "🇩🇪🇫🇷", "\u200d", "\u200b", "각", "\u1100\u1161\u11a8"),
    *("क्षि", "नमस्ते। "),
    *("他说。", "「はい！」", "日本語", "สวัสดี", "مرحبا؟ ", "\u200fעברית", "\u0600", "\U000e0041"),
    *("\ud800", "\udc00", "\ud83d\ude00", "<|endoftext|>", "| a | b |\n", "```\n", "$x$", "&amp;"),
)
"""Pieces of text that have broken text splitters."""


def hostile_texts(max_pieces: int = 40) -> SearchStrategy[str]:
    """Return a Hypothesis strategy for texts that are hard to split.

    Parameters:
        max_pieces: maximum number of pieces in a text, each from `HOSTILE_PIECES` or any character.
    """
    from hypothesis import strategies

    piece = strategies.sampled_from(HOSTILE_PIECES) | strategies.characters()
    return strategies.lists(piece, max_size=max_pieces).map("".join)


def check_chunker(
    chunker: Chunker, text: str, dropped: Iterable[tuple[int, int]] = ()
) -> list[Span]:
    """Check all guarantees of a chunker for one text.

    Parameters:
        chunker: the chunker, or a text splitter or node parser of a front end.
        text: any text.
        dropped: start and end of each part of the text that the chunker is documented to drop.

    Returns: the spans, for further checks.

    Raises AssertionError, with the chunks, if a guarantee does not hold.

    >>> from rag_splitters import SentenceChunker
    >>> len(check_chunker(SentenceChunker(chunk_size=10), "One. Two. Three."))
    2
    """
    if not isinstance(chunker, Chunker):
        raise InputTypeError(f"chunker must be a Chunker, got {chunker!r}")
    spans = chunker.spans(text)
    context = _Context(chunker, text, spans)
    again = list(chunker.split([Source(text), Source(text)]))
    assert again == [spans, spans], f"a second run differs: {context}"
    if not text.strip():
        assert spans == [], f"blank text must give no chunks: {context}"
    _check_positions(text, spans, context)
    leaves, is_tree = _leaves(spans), any(span.parent is not None for span in spans)
    if is_tree:
        _check_tree(spans, context)
    _check_order(leaves, context)
    _check_coverage(text, [*((span.start, span.end) for span in leaves), *dropped], context)
    clusters = _cluster_ends(text)
    if not is_tree and isinstance(chunker, SizedChunker):
        _check_overlap(chunker, text, spans, clusters, context)
    for span in spans:
        assert {span.start, span.end} <= clusters, f"{span} cuts a grapheme cluster: {context}"
        content = span.text_of(text)
        is_cluster = len(_cluster_ends(content)) == 2
        assert is_cluster or chunker.fits(content), f"{span} is too big: {context}"
    return spans


@lru_cache(maxsize=256)
def _cluster_ends(text: str) -> frozenset[int]:
    """Return the offsets at which grapheme clusters end, and 0."""
    return frozenset([0, *(match.end() for match in regex.finditer(r"\X", text, regex.DOTALL))])


@dataclass(frozen=True)
class _Context:
    """What was split, for error messages; it is formatted only if a check fails."""

    chunker: Chunker
    text: str
    spans: list[Span]

    @property
    def positions(self) -> list[tuple[int, int]]:
        return [(span.start, span.end) for span in self.spans]

    def __str__(self) -> str:
        return f"{self.chunker!r} on {self.text!r}: {self.positions}"


def _check_positions(text: str, spans: list[Span], context: _Context) -> None:
    for span in spans:
        assert 0 <= span.start < span.end <= len(text), f"{span} is not in the text: {context}"
        assert span.text_of(text).strip(), f"{span} is blank: {context}"


def _leaves(spans: list[Span]) -> list[Span]:
    """Return the spans without children: all of them, unless the chunks form a tree."""
    parents = {span.parent for span in spans}
    return [span for number, span in enumerate(spans) if number not in parents]


def _check_order(spans: list[Span], context: _Context) -> None:
    for one, other in pairwise(spans):
        assert one.start <= other.start, f"{one} and {other} are out of order: {context}"
        overlaps = "image" in (one.modality, other.modality)  # an image and its sentence
        rewritten = other.content is not None and other.content != one.content
        adds = one.end < other.end or overlaps or (rewritten and one.end == other.end)
        assert adds, f"{other} adds nothing to {one}: {context}"


def _check_tree(spans: list[Span], context: _Context) -> None:
    """Check that parents precede and contain their children, and that no span occurs twice."""
    assert len({(span.start, span.end) for span in spans}) == len(spans), f"twice: {context}"
    for number, span in enumerate(spans):
        if span.parent is not None:
            assert 0 <= span.parent < number, f"{span} comes before its parent: {context}"
            parent = spans[span.parent]
            inside = parent.start <= span.start and span.end <= parent.end
            assert inside, f"{span} is not inside its parent {parent}: {context}"


def _check_coverage(text: str, parts: list[tuple[int, int]], context: _Context) -> None:
    covered = 0
    for start, end in [*sorted(parts), (len(text), len(text))]:
        lost = text[covered:start].strip()
        assert not lost, f"{lost!r} is lost: {context}"
        covered = max(covered, end)


def _check_overlap(
    chunker: SizedChunker, text: str, spans: list[Span], clusters: frozenset[int], context: _Context
) -> None:
    """Check that overlaps fit, and that no longer overlap would have been possible.

    An overlap begins with a sentence or, if no whole sentence fits, with a line, else with a
    clause, or else with a word. An exact overlap must be the longest to the grapheme cluster. An
    overlap fits if it leaves room for new text: for one grapheme cluster, or for all new text of
    the chunk if that begins with a heading, a lead-in or a word that would be cut, or if chunks
    have a minimum size, as those of JSON always do. Nor does it begin inside what is unbreakable,
    or leave no room for that. One that begins inside a table may begin with any row.
    Chunkers with `overlap_sentences` repeat a number of sentences, and those with a `language` keep
    definitions together that only a parser finds; both are not checked.
    """
    if getattr(chunker, "overlap_sentences", 0) or getattr(chunker, "language", None):
        return
    measure = sizer(chunker.length_function)(text)
    view = with_line_feeds(text)
    if view != text and [(s.start, s.end) for s in chunker.spans(view)] == context.positions:
        text = view  # else it was cut as it is, because carriage returns need more tokens
    whole = _unbreakable(chunker, text, spans)
    sentences, others = _overlap_starts(chunker, text, clusters, whole)
    blocks = _blocks(chunker, text)
    headings = {block.start for block in blocks if block.kind == "heading"}  # of several lines, too
    tables = [(block.start, block.end) for block in blocks if block.kind in ("html", "table")]
    for one, other in pairwise(spans):
        if "table" in (one.modality, other.modality) or one.is_rewritten or other.is_rewritten:
            continue  # tables repeat whole rows, and rewritten chunks other text
        if other.start < one.end:
            length = measure.length(other.start, one.end)
            assert length <= chunker.overlap, f"overlap of {length}: {one}, {other}: {context}"
        new = len(text) - len(text[one.end :].lstrip())
        stop = min((end for end in clusters if end > new), default=len(text))
        stop = max([stop, *(end for start, end in whole if start <= new < end)])
        beginning = " ".join(text[new : new + _LONGEST_HEADING].split())
        marked = (beginning, beginning.lstrip("*=# "))  # as in Org, wikis and Markdown
        is_heading = new in headings or any(b.startswith(other.headings[-1:]) for b in marked)
        is_lead = is_heading or _begins_with_lead(text, new, stop, other.end)
        if chunker.sizes.min_size or is_lead or chunker.strategy == "json":
            stop = other.end
        word_end = _end_of_word(text, stop)
        word_end = max([word_end, *(end for start, end in whole if start < word_end < end)])
        word_end = min((end for end in clusters if end >= word_end), default=word_end)
        longer = [start for start in others if one.start <= start < min(other.start, one.end)]
        if chunker.exact_overlap:
            longer = [start for start in longer if text[start : other.start].strip()][-1:]
        best = [start for start in sentences if one.start <= start < one.end]
        best += _lines_and_clauses(text, one, whole) if not chunker.exact_overlap else []
        for start in [*best, *longer] if chunker.overlap else []:
            if start == other.start:
                break
            if any(low <= place < high for low, high in tables for place in (start, other.start)):
                continue
            is_longer = measure.length(start, one.end) > chunker.overlap
            cuts_word = measure.length(start, word_end) > chunker.chunk_size
            room = max(stop, other.end) if cuts_word and not chunker.exact_overlap else stop
            has_room = measure.furthest(start, chunker.chunk_size) >= room  # by whole tokens
            if not is_longer and has_room and measure.fits(start, room, chunker.chunk_size):
                skipped = text[min(start, other.start) : max(start, other.start)].strip()
                assert not skipped, f"{other} should start at {start}: {context}"
                break


def _blocks(chunker: SizedChunker, text: str) -> list[Block]:
    """Return the blocks of a text, if the chunker packs those of Markdown or plain text."""
    if not hasattr(chunker, "format") and chunker.strategy != "auto":
        return []
    text_format = detect_format(text, None, getattr(chunker, "format", "auto"))
    return read_blocks(text, text_format) if text_format in ("markdown", "text") else []


def _end_of_word(text: str, position: int) -> int:
    """Return the end of the word around a position; the mark of an item belongs to its word."""
    word = _WORD.match(text, position)
    end = word.end() if word else position
    following = len(text) - len(text[end:].lstrip(" "))
    return _end_of_word(text, following) if is_behind_mark(text, following) else end


def _unbreakable(chunker: SizedChunker, text: str, spans: list[Span]) -> list[tuple[int, int]]:
    """Return the ranges that a chunker keeps whole if they fit: mentions of entities, signatures of
    code and, if it packs sentences, fences, rows, items and quotations.
    """
    ranges = [
        (mention["start"], mention["end"])
        for span in spans
        for mention in span.metadata.get("entities", ())
    ]
    is_by_sentence = any(span.metadata.get("strategy") in _BY_SENTENCE for span in spans)
    if is_by_sentence or hasattr(chunker, "segmenter") or hasattr(chunker, "group"):
        markers = "`~|" if hasattr(chunker, "window_size") else ""
        marked = find_unbreakable(text)
        ranges += [part for part in marked if not markers or text[part[0]] in markers]
    for language in {span.metadata["language"] for span in spans if "language" in span.metadata}:
        ranges += find_signatures(text, language)
    structure = Structure(text, unbreakable=lambda: ranges)
    return list(structure.fit(chunker.sizes).unbreakable)


def _overlap_starts(
    chunker: SizedChunker, text: str, clusters: frozenset[int], whole: list[tuple[int, int]]
) -> tuple[list[int], list[int]]:
    """Return where overlaps may begin: (sentences, words), or ([], any place) if exact."""
    starts = [at for at in sorted(clusters) if not any(low < at < high for low, high in whole)]
    if chunker.exact_overlap:
        return [], starts
    cuts = segmenter_cuts(getattr(chunker, "segmenter", "rules"), text)
    sentences = {len(text) - len(text.lstrip()), *cuts}
    words = [at for at in starts if text[at - 1 : at].isspace() and not text[at : at + 1].isspace()]
    return [at for at in starts if at in sentences], words


def _lines_and_clauses(text: str, span: Span, whole: list[tuple[int, int]]) -> Iterator[int]:
    """Yield the beginnings of lines in a chunk, then those of clauses, and of the chunk itself."""
    for first in (line_starts(text).first, clause_starts(text).first):
        start = first(span.start, span.start, span.end)
        while start >= 0:
            if not any(low < start < high for low, high in whole):
                yield start
            start = first(span.start, start + 1, span.end)


def _begins_with_lead(text: str, new: int, stop: int, end: int) -> bool:
    """Whether lines that belong to what follows them begin between `new` and `stop`."""
    ends = regex.finditer(r"\n|<[^<>]*>|[)\]};,`~]\s", text, pos=new, endpos=end)
    return any(lead_start(text, new, each.end()) < min(stop, each.end()) for each in ends)


def check_documents(source: Document, documents: list[Document], chunker: Chunker) -> None:
    """Check the chunks that a LangChain splitter made of one document.

    Parameters:
        source: the document.
        documents: its chunks.
        chunker: the splitter, or a chunker that cuts at the same places.

    Raises AssertionError, with the chunks, if text, positions, ids or metadata are wrong.
    """
    text = source.page_content
    spans = next(chunker.split([Source(text, source.metadata)]))
    chunks = [_chunk(chunk.page_content, chunk.metadata) for chunk in documents]
    assert chunks == [(span.text_of(text), span.start, span.end) for span in spans], chunks
    _check_ids([str(document.id) for document in documents])
    for index, document in enumerate(documents):
        expected = {"chunk_index": index} | source.metadata
        assert expected.items() <= document.metadata.items(), document


def _chunk(text: str, metadata: dict[str, Any]) -> tuple[str, Any, Any]:
    return text, metadata.get("start_index"), metadata.get("end_index")


def check_nodes(source: BaseNode, nodes: list[BaseNode], chunker: Chunker) -> None:
    """Check the nodes that a LlamaIndex parser made of one document.

    Parameters:
        source: the document.
        nodes: its chunks.
        chunker: the parser, or a chunker that cuts at the same places.

    Raises AssertionError, with the chunks, if text, positions, ids, metadata or relationships are
    wrong.
    """
    text = source.get_content()
    own = getattr(chunker, "_sources", None)  # a parser leaves room for metadata
    spans = next(chunker.split(own([source]) if own else [Source(text, source.metadata)]))
    chunks = [
        (_text_with_context(n), n.start_char_idx, n.end_char_idx)  # type: ignore[attr-defined]
        for n in nodes
    ]
    assert chunks == [(span.text_of(text), span.start, span.end) for span in spans], chunks
    _check_ids([node.node_id for node in nodes])
    for node in nodes:
        assert node.source_node is not None
        assert node.source_node.node_id == source.node_id
        own_keys = set(node.metadata) - set(source.metadata)
        assert own_keys - {"context"} <= set(node.excluded_embed_metadata_keys)
        assert own_keys <= set(node.excluded_llm_metadata_keys)
    leaves = [node for node in nodes if not node.child_nodes]
    for one, other in pairwise(leaves) if getattr(chunker, "include_prev_next_rel", True) else ():
        assert one.next_node is not None, one
        assert other.prev_node is not None, other
        assert (one.next_node.node_id, other.prev_node.node_id) == (other.node_id, one.node_id)


def _text_with_context(node: BaseNode) -> str:
    """Return a node's text after its context, which LlamaIndex keeps in the metadata."""
    context, text = node.metadata.get("context"), node.get_content()
    return f"{context}\n\n{text}" if context else text


def _check_ids(ids: list[str]) -> None:
    pattern = r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(regex.fullmatch(pattern, each) for each in ids), ids
    assert len(set(ids)) == len(ids), ids
