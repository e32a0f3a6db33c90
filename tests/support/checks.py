"""The contract as a check for our own strategies: it also knows how they choose overlaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import regex

from rag_splitters import FixedSizeChunker, testing
from rag_splitters.contract.chunker import Chunker
from rag_splitters.contract.sized import SizedChunker
from rag_splitters.span import Span
from rag_splitters.structure.blocks import Block, detect_format, read_blocks
from rag_splitters.structure.html.text import plain_page
from rag_splitters.structure.signatures import find_signatures
from rag_splitters.structure.text_tables import _tables_of
from rag_splitters.testing import _cluster_ends, _Context
from rag_splitters.text.boundaries import boundary_before
from rag_splitters.text.leads import lead_start
from rag_splitters.text.lines import LINE, is_behind_mark, with_line_feeds
from rag_splitters.text.segmenters import segmenter_cuts
from rag_splitters.text.sizing import sizer
from rag_splitters.text.structure import Structure
from rag_splitters.text.unbreakable import find_unbreakable
from rag_splitters.text.wrapping import next_clause, next_line

__all__ = ["check_chunker", "dropped_of_html"]

# Strategies that Auto chooses, and that pack sentences.
_BY_SENTENCE = ("sentence", "semantic", "embedding", "cluster", "topic")
_LONGEST_HEADING = 1000  # characters
_WHOLE_KINDS = ("code", "formula", "front_matter", "html", "list_item", "quote", "rule")
# White space with a combining mark on it is visible.
_WORD = regex.compile(r"(?:\S|\s(?=[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]))+")


def check_chunker(
    chunker: Chunker, text: str, dropped: Iterable[tuple[int, int]] | None = None
) -> list[Span]:
    """`rag_splitters.testing.check_chunker`, and that overlaps are the longest possible.

    A strategy that reads HTML may drop what a browser does not show. Each modality has the size of
    its own chunker.
    """
    if dropped is None:
        dropped = dropped_of_html(chunker, text) if hasattr(chunker, "format") else ()
    spans = testing.check_chunker(chunker, text, dropped)
    for span in spans:
        own, content = getattr(chunker, str(span.modality), None), span.text_of(text)
        is_cluster = len(_cluster_ends(content)) == 2
        assert not isinstance(own, Chunker) or own.fits(content) or is_cluster, f"{span} is too big"
    is_tree = any(span.parent is not None for span in spans)
    if not is_tree and isinstance(chunker, SizedChunker):
        _check_longest_overlap(chunker, text, spans)
    return spans


def _check_longest_overlap(chunker: SizedChunker, text: str, spans: list[Span]) -> None:
    """Check that overlaps fit, and that no longer overlap would have been possible.

    An overlap begins with a sentence or, if no whole sentence fits, with a line, else with a
    clause, or else with a word. An exact overlap must be the longest to the grapheme cluster. An
    overlap fits if it leaves room for new text: for one grapheme cluster, or for all new text of
    the chunk if that begins with a heading, a lead-in, an indentation that is kept or a word that
    would be cut, or if chunks have a minimum size, as those of JSON always do. Nor does it begin
    inside what is unbreakable or a block that is kept whole, or leave no room for that. One that
    begins inside a table may begin with any row. Chunkers with `overlap_sentences` repeat a number
    of sentences, and those with a `language` keep definitions together that only a parser finds;
    both are not checked.
    """
    if getattr(chunker, "overlap_sentences", 0) or getattr(chunker, "language", None):
        return
    if chunker.sizes.size is None:  # as of a separator's pieces, which do not overlap
        return
    is_exact = _has_exact_overlap(chunker)
    context = _Context(chunker, text, spans)
    clusters = _cluster_ends(text)
    view = with_line_feeds(text)
    if view != text and [(s.start, s.end) for s in chunker.spans(view)] == context.positions:
        text = view  # else it was cut as it is, because carriage returns need more tokens
    measure = sizer(chunker.length_function)(text)
    whole = _unbreakable(chunker, text, spans)
    blocks = _blocks(chunker, text)
    tables = [(block.start, block.end) for block in blocks if block.kind in ("html", "table")]
    tables += [(each.start, each.end) for block in blocks for each in _tables_of(text, block)]
    closed = [*whole, *_fitting(chunker, text, spans, blocks)]
    rows = [row.span() for part in tables for row in LINE.finditer(text, *part)]
    sentences, others = _overlap_starts(chunker, text, clusters, closed)
    headings = {block.start for block in blocks if block.kind == "heading"}  # of several lines, too
    for one, other in pairwise(spans):
        if "table" in (one.modality, other.modality) or one.is_rewritten or other.is_rewritten:
            continue  # tables repeat whole rows, and rewritten chunks other text
        if other.start < one.end:
            length = measure.length(other.start, one.end)
            assert length <= chunker.overlap, f"overlap of {length}: {one}, {other}: {context}"
            is_in_table = any(low <= other.start < high for low, high in tables)
            is_inside = any(low < other.start < high for low, high in closed)
            assert is_in_table or not is_inside, f"{other} begins inside what is whole: {context}"
        new = len(text) - len(text[one.end :].lstrip())
        stop = min((end for end in clusters if end > new), default=len(text))
        room = [end for start, end in (*closed, *rows) if start <= new < end]
        room = [end for end in room if measure.fits(new, end, chunker.chunk_size)]
        stop = max([stop, *room])
        beginning = " ".join(text[new : new + _LONGEST_HEADING].split())
        marked = (beginning, beginning.lstrip("*=# "))  # as in Org, wikis and Markdown
        is_heading = new in headings or any(b.startswith(other.headings[-1:]) for b in marked)
        is_lead = is_heading or _begins_with_lead(text, new, stop, other.end)
        keeps_space = not getattr(chunker, "strip_whitespace", True)
        is_lead = is_lead or (keeps_space and one.end < new and text[one.end - 1] == "\n")
        if chunker.sizes.min_size or is_lead or chunker.strategy == "json":
            stop = max([other.end, *room])
        word_end = _end_of_word(text, stop)
        word_end = max([word_end, *(end for start, end in whole if start < word_end < end)])
        word_end = min((end for end in clusters if end >= word_end), default=word_end)
        longer = [start for start in others if one.start <= start < min(other.start, one.end)]
        if is_exact:
            longer = [start for start in longer if text[start : other.start].strip()][-1:]
        best = [start for start in sentences if one.start <= start < one.end]
        best += _lines_and_clauses(text, one, closed) if not is_exact else []
        for start in [*best, *longer] if chunker.overlap else []:
            if start == other.start:
                break
            if any(low <= place < high for low, high in tables for place in (start, other.start)):
                continue
            is_longer = measure.length(start, one.end) > chunker.overlap
            cuts_word = measure.length(start, word_end) > chunker.chunk_size
            needed = max(stop, other.end) if cuts_word and not is_exact else stop
            has_room = measure.furthest(start, chunker.chunk_size) >= needed  # by whole tokens
            if not is_longer and has_room and measure.fits(start, needed, chunker.chunk_size):
                skipped = text[min(start, other.start) : max(start, other.start)].strip()
                assert not skipped, f"{other} should start at {start}: {context}"
                break


def dropped_of_html(chunker: Chunker, text: str) -> list[tuple[int, int]]:
    """Return the parts of a page of which nothing is shown; of any other text, nothing."""
    if detect_format(text, None, getattr(chunker, "format", "auto")) != "html":
        return []
    excerpt = plain_page(text, getattr(chunker, "main_content_only", True)).excerpt
    parts, position = [], 0
    for offset, start, end in zip(excerpt.offsets, excerpt.starts, excerpt.ends, strict=True):
        if start < end and excerpt.text[offset : offset + 1].strip():
            parts.append((position, start))
            position = max(position, end)
    return [*parts, (position, len(text))]


def _has_exact_overlap(chunker: SizedChunker) -> bool:
    return isinstance(chunker, FixedSizeChunker) or hasattr(chunker, "exact_overlap")


def _blocks(chunker: SizedChunker, text: str) -> list[Block]:
    """Return the blocks of a text, if the chunker packs those of Markdown or plain text."""
    if not hasattr(chunker, "format") and chunker.strategy != "auto":
        return []
    text_format = detect_format(text, None, getattr(chunker, "format", "auto"))
    return read_blocks(text, text_format) if text_format in ("markdown", "text") else []


def _fitting(
    chunker: SizedChunker, text: str, spans: list[Span], blocks: list[Block]
) -> list[tuple[int, int]]:
    """Return the fitting blocks, except tables, that stay whole, if the chunker packs blocks."""
    strategies = {chunker.strategy, *(span.metadata.get("strategy") for span in spans)}
    if not strategies & {"content_aware", "hierarchical"}:
        return []
    ranges = [(block.start, block.end) for block in blocks if block.kind in _WHOLE_KINDS]
    structure = Structure(text, unbreakable=lambda: ranges)
    return list(structure.fit(chunker.sizes).unbreakable)


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
    if _has_exact_overlap(chunker):
        return [], starts
    cuts = segmenter_cuts(getattr(chunker, "segmenter", "rules"), text)
    sentences = {len(text) - len(text.lstrip()), *cuts}
    words = [at for at in starts if text[at - 1 : at].isspace() and not text[at : at + 1].isspace()]
    return [at for at in starts if at in sentences], words


def _lines_and_clauses(text: str, span: Span, whole: list[tuple[int, int]]) -> Iterator[int]:
    """Return the beginning of a chunk, then those of its lines, and those of its clauses."""

    def is_free(start: int) -> bool:
        is_inside = any(low < start < high for low, high in whole)
        return boundary_before(text, start) == start and not is_inside

    starts = [span.start]
    for find in (next_line, next_clause):
        start = find(text, span.start, span.end)
        while start >= 0:
            starts.append(start)
            start = find(text, start + 1, span.end)
    return filter(is_free, starts)


def _begins_with_lead(text: str, new: int, stop: int, end: int) -> bool:
    """Whether lines that belong to what follows them begin between `new` and `stop`."""
    ends = regex.finditer(r"\n|<[^<>]*>|[)\]};,`~]\s", text, pos=new, endpos=end)
    return any(lead_start(text, new, each.end()) < min(stop, each.end()) for each in ends)
