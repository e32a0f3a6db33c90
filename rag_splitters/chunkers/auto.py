"""AutoChunker: detects the kind of each document and chooses a strategy for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AfterValidator, ConfigDict

from rag_splitters.chunkers.cluster import ClusterChunker
from rag_splitters.chunkers.code import CodeChunker
from rag_splitters.chunkers.content_aware import ContentAwareChunker
from rag_splitters.chunkers.json import JsonChunker
from rag_splitters.chunkers.parts import in_order
from rag_splitters.chunkers.recursive import RecursiveChunker
from rag_splitters.chunkers.table import TableChunker
from rag_splitters.contract.chunker import Chunker, plan_each
from rag_splitters.contract.registry import Nested, registered_strategy
from rag_splitters.contract.sized import SIZES, MergingChunker
from rag_splitters.errors import InputError
from rag_splitters.models import Embeddings
from rag_splitters.parameters.fields import Least
from rag_splitters.span import Source, Span
from rag_splitters.structure.kinds import (
    KINDS,
    READ_KINDS,
    declared_names,
    declared_types,
    detect_kind,
    kind_of_type,
    read_kind,
)
from rag_splitters.structure.languages import language_record
from rag_splitters.structure.outline import Outline
from rag_splitters.text.origin import Reading, UnreadableError


class _Rules(dict[str, str | Chunker]):
    """Rules, as a dictionary in which the order counts."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and list(self.items()) == list(other.items())

    def __ne__(self, other: object) -> bool:
        return not self == other


class AutoChunker(MergingChunker):
    """Detects the kind of each document and cuts it with a strategy for it, all in the same size.

    Use it for folders with many kinds of files, or if you do not want to choose. The kind is
    detected from the metadata (a file name or a MIME type) and from the text itself:

    - Markdown, HTML, XML, RST, AsciiDoc, Org, LaTeX, man pages, logs, PDF and any other text:
      `ContentAwareChunker`, or `ClusterChunker` for text without headings if you pass `embeddings`
    - source code: `CodeChunker` or, if tree-sitter or its grammar is not installed,
      `RecursiveChunker` with the separators of the language
    - CSV and TSV: `TableChunker`; JSON and JSON lines: `JsonChunker`
    - raw notebooks, subtitles and mailboxes: the strategy for the text that `FileLoader` and
      `FileReader` would read from them; no chunk holds text of two mails

    Metadata: `strategy`, the name of the strategy that was used, and the metadata of that strategy;
    for raw notebooks also `cell_start` and `cell_end`, for subtitles `start_time` and `end_time` in
    seconds, and for mails `subject`, `sender`, `date` and `message_id`.

    Rewrites and drops what that strategy rewrites and drops. Chunks of raw notebooks, subtitles and
    mails are decoded text without markup; see `read_notebook`, `read_subtitles` and `read_mails`.
    Their `start` and `end` bound the part of the raw text that they were made from.

    Raises ValueError if a rule names an unknown strategy, or one that needs more than sizes and
    `embeddings`, or if the sizes are inconsistent.

    >>> chunker = AutoChunker(chunk_size=200, rules={"*.log": "separator"})
    >>> chunker.chunk('{"tea": "green"}')[0].metadata["strategy"]
    'json'
    >>> chunker.chunk("One.", metadata={"source": "logs/a.log"})[0].metadata["strategy"]
    'separator'
    """

    strategy: ClassVar[str] = "auto"
    hands_prefix_on: ClassVar[bool] = True

    model_config = ConfigDict(hide_input_in_errors=True)  # a model's repr may hold its key

    min_chunk_size: Least = 0.1

    rules: Annotated[Mapping[str, str | Nested], AfterValidator(_Rules)] = _Rules()
    """Strategies to use instead, by file name ("*.sql", "docs/*.txt"), MIME type ("text/html") or
    kind ("python"). Each is a strategy's name, which is used with these sizes, or a chunker with
    sizes of its own. The first rule that matches applies."""

    drop_contents: bool = True
    """Whether to drop tables of contents and indexes in plain text, such as that of a PDF: lines
    with dot leaders and page numbers."""

    embeddings: Embeddings | None = None
    """Embedding model for `ClusterChunker`, which cuts text without headings where its subject
    changes; None: such text is cut by `ContentAwareChunker`, at paragraphs if possible."""

    def check_parameters(self) -> None:
        super().check_parameters()
        for pattern, rule in self.rules.items():
            if isinstance(rule, str):
                try:
                    self._by_name(rule)
                except ValueError as error:
                    raise InputError(f"rules[{pattern!r}]: {error}") from None

    def fits(self, content: str) -> bool:
        return super().fits(content) or any(
            rule.fits(content) for rule in self.rules.values() if isinstance(rule, Chunker)
        )

    async def plan(self, sources: Sequence[Source]) -> list[list[Span]]:
        choices = [self._choice(source.text, source.metadata) for source in sources]
        readings = list(map(_readings, sources, choices))
        texts: list[tuple[Source, _Choice]] = []
        for source, choice, parts in zip(sources, choices, readings, strict=True):
            if parts is None:
                texts.append((source, choice))
            for part in parts or ():
                text = _as_source(source, part)
                texts.append((text, self._choice(text.text, text.metadata)))
        planned = iter(await self._plan_texts(texts))
        return [
            next(planned)
            if parts is None
            else _in_raw_text(source.text, [(part, next(planned)) for part in parts])
            for source, parts in zip(sources, readings, strict=True)
        ]

    async def _plan_texts(self, texts: Sequence[tuple[Source, _Choice]]) -> list[list[Span]]:
        """Cut texts that need no reading first, each with the strategy that was chosen for it."""
        choices = [choice for _, choice in texts]
        chunkers = {choice: self._chunker(choice) for choice in dict.fromkeys(choices)}
        chosen = [chunkers[choice] for choice in choices]
        plans = await plan_each(chosen, [source for source, _ in texts])
        names = [chunker.strategy or type(chunker).__name__ for chunker in chosen]
        return [  # copies, as a strategy of the user's may keep its spans
            [replace(each, metadata={**each.metadata, "strategy": name}) for each in spans]
            for name, spans in zip(names, plans, strict=True)
        ]

    def _choice(self, text: str, metadata: Mapping[str, Any]) -> _Choice:
        """Choose the strategy for a text."""
        kind = detect_kind(text, metadata)
        for pattern in self.rules:
            if _matches(pattern, kind, metadata):
                return _Choice(rule=pattern)
        if kind == "text" and self.embeddings is not None:
            headings = Outline.of(text, "text", metadata=metadata).headings
            return _Choice("text without headings" if len(headings) < 2 else kind)
        return _Choice(kind)

    def _chunker(self, choice: _Choice) -> Chunker:
        """Build the chunker for a choice."""
        if choice.rule:
            rule = self.rules[choice.rule]
            return self._by_name(rule) if isinstance(rule, str) else rule
        if choice.kind == "text without headings":
            return self._build(ClusterChunker, embeddings=self.embeddings)
        if choice.kind in ("json", "notebook"):
            return self._build(JsonChunker)
        text_format = KINDS[choice.kind].format
        if text_format == "code":
            return self._for_code(KINDS[choice.kind].language)
        if text_format in ("csv", "tsv"):
            return self._build(TableChunker, format=text_format)
        return self._build(
            ContentAwareChunker, format=text_format, drop_contents=self.drop_contents
        )

    def _for_code(self, language: str | None) -> Chunker:
        record = language_record(language)
        needed = ("tree_sitter", *record.grammar.split()[:1])
        if record.grammar and not all(map(find_spec, needed)):
            return self._build(RecursiveChunker, language=language if record.separators else None)
        return self._build(CodeChunker, language=language or "auto")

    def _by_name(self, name: str) -> Chunker:
        """Build the strategy that a rule names, with our sizes."""
        kind = registered_strategy(name)
        embeds = "embeddings" in kind.model_fields and self.embeddings is not None
        return self._build(kind, **({"embeddings": self.embeddings} if embeds else {}))

    def _build(self, kind: type[Chunker], **parameters: Any) -> Chunker:
        names = (name for name in (*SIZES, "min_chunk_size") if name in kind.model_fields)
        sizes = {name: getattr(self, name) for name in names}
        return kind(**sizes, **parameters)


def _readings(source: Source, choice: _Choice) -> list[Reading] | None:
    """Read the texts in a raw notebook, subtitles or mails; None for any other kind."""
    if choice.kind not in READ_KINDS:
        return None
    try:
        return read_kind(source.text, choice.kind)
    except UnreadableError:
        return None


def _as_source(source: Source, reading: Reading) -> Source:
    """Make a text that was read from a source a source of its own."""
    start = reading.excerpt.start(0) if reading.text else 0
    metadata = {**source.metadata, **reading.to_metadata()}
    return source.part(reading.text, start, metadata)


def _in_raw_text(text: str, plans: Iterable[tuple[Reading, list[Span]]]) -> list[Span]:
    """Return the chunks of texts that were read from a raw text, with positions in it."""
    results: list[Span] = []
    for reading, spans in plans:
        placed = reading.excerpt.spans(reading.with_places(spans), text)
        outer, first = Span(0, 0, reading.metadata), len(results)
        results += [span.within(outer, first) for span in placed]
    return in_order(results)


class _Choice(NamedTuple):
    """The choice of a strategy: by the kind of the text, or by the rule that it matches."""

    kind: str = ""
    rule: str = ""


def _matches(pattern: str, kind: str, metadata: Mapping[str, Any]) -> bool:
    """Whether a rule's pattern matches the name, the MIME type or the kind of a document."""
    pattern = pattern.lower()
    if pattern == kind or pattern in declared_types(metadata):
        return True
    if "/" in pattern and kind_of_type(pattern) == kind:
        return True
    for name in declared_names(metadata):
        path = name.lower()
        if fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern):
            return True
        if "/" in pattern and fnmatchcase(path, f"*/{pattern}"):
            return True
    return False
