"""The five tools over an index.

Each is a coroutine function that awaits only calls. Its docstring and its signature are what an
agent sees. None of them writes.
"""

# Without `from __future__ import annotations`: LlamaIndex makes schemas of annotations, not texts.

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from difflib import get_close_matches
from functools import wraps
from inspect import getdoc
from typing import Annotated, Any, NamedTuple

from pydantic import Field, validate_call

from rag_splitters.calls import call, in_both_forms
from rag_splitters.errors import InputError, RagSplittersError
from rag_splitters.parameters.checks import whole_number
from rag_splitters.parameters.messages import plain_errors
from rag_splitters.parent_child.index import ParentChildIndex
from rag_splitters.parent_child.indexing import read_sources
from rag_splitters.parent_child.records import EXCLUDED_KEY, SOURCE_KEY, Entry, Record, record_key
from rag_splitters.parent_child.results import SCORE_KEY
from rag_splitters.parent_child.revisions import prepare_keyword_index
from rag_splitters.parent_child.stores.stores import Stores
from rag_splitters.structure.outline import Outline
from rag_splitters.text.origin import line_breaks
from rag_splitters.text.sentences import sentence_spans
from rag_splitters.text.sizing import sizer
from rag_splitters.text.surrogates import without_surrogates
from rag_splitters.tools.answers import MIN_TOKENS, cut, first_line, fit, header, label, places
from rag_splitters.tools.answers import quote as q
from rag_splitters.tools.grep import Pattern

_MAX_LINES = 10_000  # of one grep
_MAX_COMPARED = 10_000  # ids, to find those that are like an unknown one
_WINDOW = 8  # characters for each token that expand shows


def _says(description: str) -> Any:
    return Field(description=description)


DocumentId = Annotated[str, _says("Id of a document, as search and outline print it.")]
MaxTokens = Annotated[int, _says("Maximum size of the answer, in tokens.")]


class Tool(NamedTuple):
    """A tool for agents, in a form for synchronous callers and one for asynchronous callers."""

    name: str
    description: str
    function: Callable[..., str]
    async_function: Callable[..., Coroutine[Any, Any, str]]


def index_tools(index: ParentChildIndex[Any, Any]) -> list[Tool]:
    """Return the tools over an index, for agents of any framework.

    An answer is plain text within a budget of tokens, and says what was left out. An error is an
    answer, too, and says what to do. If the retriever has a filter, it holds for all tools: they
    show only documents with a chunk that it lets through.

    Parameters:
        index: a `ParentDocumentRetriever` of either framework.

    >>> from langchain_core.documents import Document
    >>> from rag_splitters.langchain import parent_document_retriever
    >>> retriever = parent_document_retriever([Document("Tea.\\nHot water.", id="tea.txt")])
    >>> tools = {tool.name: tool.function for tool in index_tools(retriever)}
    >>> print(tools["grep"]("water"))
    (document="tea.txt")
    2: Hot water.
    """
    tools = _IndexTools(index)
    return [
        Tool(each.__name__, getdoc(each) or "", *in_both_forms(_answering(each)))
        for each in (tools.search, tools.grep, tools.outline, tools.read, tools.expand)
    ]


def _answering(tool: Callable[..., Awaitable[str]]) -> Callable[..., Coroutine[Any, Any, str]]:
    """Return the tool with the errors that it raises on purpose as answers.

    Arguments are checked, because not every framework does, and models write "1" or null for 1.
    """
    checked = validate_call(tool)

    @wraps(tool)
    async def answer(*args: Any, **kwargs: Any) -> str:
        try:
            with plain_errors(tool):
                return without_surrogates(await checked(*args, **kwargs))
        except RagSplittersError as error:
            return without_surrogates(cut(f"Error: {error}", MIN_TOKENS))

    return answer


class _IndexTools:
    """The tools over one index."""

    def __init__(self, index: ParentChildIndex[Any, Any]) -> None:
        self._index = index

    async def search(
        self,
        question: Annotated[str, _says("What you want to know.")],
        filters: Annotated[
            dict[str, Any] | None,
            _says('Metadata that passages must have: {"source": "a.md"}, {"year": {"$gte": 2020}}'),
        ] = None,
        max_tokens: MaxTokens = 2000,
    ) -> str:
        """Search the documents by meaning and by keywords, for the passages that match best.

        Above each passage stand its label and the arguments for expand, which shows the text around
        it. A score is between 0 (nothing in common with the question) and 1.
        """
        if not question.strip():
            raise InputError("the question is blank: say what you want to know")
        room = whole_number(max_tokens, "max_tokens", MIN_TOKENS) * 4 // 5
        options = {"retrieve": "passages", "max_tokens": room, "k": None}
        results = await self._index._search(
            *self._index._prepare(question, options), conditions=filters
        )
        stores = self._index._filtered_stores()
        if not results:
            keys = {
                key
                async for records in self._records(stores)
                for each in records
                for key in each.metadata
                if key != EXCLUDED_KEY
            }
            message = f"No passage has {q(filters)}. Keys for filters: {', '.join(sorted(keys))}"
            return cut(message if filters else "Nothing matches. Call outline.", max_tokens)
        names = dict.fromkeys(result.metadata.get(SOURCE_KEY, "") for result in results)
        documents = {each.id: each for each in await self._read_some(stores, list(names))}
        passages = [
            f"[{number}] {_passage(each, documents.get(each.metadata.get(SOURCE_KEY)))}\n"
            for number, each in enumerate(results, 1)
        ]
        note = (
            "[What matches less was left out: ask more precisely, or raise max_tokens. For what "
            "stands around a passage, call expand.]"
        )
        return fit(lambda n: "\n".join([*passages[:n], note]), len(passages), max_tokens)

    async def grep(
        self,
        pattern: Annotated[str, _says("Words, or a regular expression.")],
        is_regex: Annotated[bool, _says("Whether the pattern is a regular expression.")] = False,
        document: Annotated[str, _says("Id of the only document to look at; empty: all.")] = "",
        max_tokens: MaxTokens = 2000,
    ) -> str:
        """Find the lines that have exact words, or match a regular expression, with their numbers.

        Words are found whole and in this order, in capitals or not. A regular expression is used as
        it is written: (?i) ignores capitals, and ^ and $ match at every line.
        """
        wanted, stores = Pattern(pattern, is_regex), self._index._filtered_stores()
        lines: list[str] = []
        stop = ""
        try:
            async for entry in self._candidates(stores, wanted.words, document):
                prefix = f"{header(entry)}\n"
                for number, line in wanted.lines(entry):
                    lines.append(f"{prefix}{number}: {line}")
                    prefix = ""
                if len(lines) > _MAX_LINES:
                    stop = "[Some documents were not looked at: use rarer words.]"
                    break
        except TimeoutError:
            stop = "[Some documents were not looked at: use a simpler pattern, or pass document.]"
        if not lines:
            return stop or (
                f"No line has {q(pattern)}. Try fewer words, is_regex=true for parts of words, or "
                "search, which also finds what is said in other words."
            )

        def render(n: int) -> str:
            more = f"[{len(lines) - n} more lines match: raise max_tokens, or pass document.]"
            return "\n".join([*lines[:n], *[more] * (n < len(lines)), *[stop] * bool(stop)])

        return fit(render, len(lines), max_tokens)

    async def outline(
        self,
        document: Annotated[str, _says("Id of a document; empty: list all documents.")] = "",
        start: Annotated[int, _says("Number of the first row to show.")] = 1,
        max_tokens: MaxTokens = 2000,
    ) -> str:
        """List all documents with their sizes or, of one document, the headings with their lines.

        Begin here if you do not know what the documents are about.
        """
        first, stores = whole_number(start, "start", 1) - 1, self._index._filtered_stores()
        if document:
            rows = _heading_rows(await self._read(stores, document))
            total, rows = len(rows), rows[first:]
        else:
            names = sorted([e.identity async for some in self._records(stores) for e in some])
            page = names[first : first + max(max_tokens, 0) // 4]  # a row has more than 4 tokens
            total = len(names)
            rows = [_document_row(each) for each in await self._read_some(stores, page)]
        if not rows:
            return f"There are only {total} rows." if total else "The index has no documents."
        argument = f"document={q(document)}, " if document else ""

        def render(n: int) -> str:
            rest = f"[Rows {first + n + 1} to {total}: outline({argument}start={first + n + 1})]"
            return "\n".join([*rows[:n], *[rest] * (first + n < total)])

        return fit(render, len(rows), max_tokens)

    async def read(
        self,
        document: DocumentId,
        start: Annotated[int, _says("Number of the first line.")] = 1,
        end: Annotated[int | None, _says("Number of the last line; null: to the end.")] = None,
        section: Annotated[str, _says("A heading, or a path such as 'Tea > Green'.")] = "",
        max_tokens: MaxTokens = 2000,
    ) -> str:
        """Read a document from one line to another, or the section below a heading."""
        entry = await self._read(self._index._filtered_stores(), document)
        if section:
            place = places(entry, *_section(entry, section))
            start, end = place["line_start"], place["line_end"]
        bounds, first = sorted({0, *line_breaks(entry.text), len(entry.text)}), first_line(entry)
        last = first + len(bounds) - 2
        start, stop = max(start, first), last if end is None else min(end, last)
        if start > stop:
            raise InputError(f"{q(document)} has lines {first} to {last}, not {start} to {stop}")
        bounds = bounds[start - first : stop - first + 2]

        def render(n: int) -> str:
            rest = f"document={q(document)}, start={start + n}, end={stop}"
            note = f"\n[There is more: read({rest})]" if start + n <= stop else ""
            text = entry.text[bounds[0] : bounds[n]].rstrip("\r\n")
            return f"{header(entry, bounds[0], bounds[n])}\n{text}{note}"

        return fit(render, len(bounds) - 1, max_tokens)

    async def expand(
        self,
        document: DocumentId,
        start: Annotated[int, _says("Where the passage begins, as search prints it.")],
        end: Annotated[int, _says("Where the passage ends, as search prints it.")],
        max_tokens: MaxTokens = 1000,
    ) -> str:
        """Show the text before and after a passage, in whole sentences."""
        entry = await self._read(self._index._filtered_stores(), document)
        text, room = entry.text, (max_tokens - MIN_TOKENS // 2) // 2
        if not 0 <= start <= end <= len(text):
            raise InputError(
                f"{q(document)} has positions 0 to {len(text)}, not {start} to {end}: pass those "
                "that search prints"
            )
        first, last = _start_before(text, start, room), _end_after(text, end, room)
        parts = [
            header(entry, first, last),
            text[first:start].strip() or "[The document begins with the passage.]",
            "[... the passage ...]",
            text[end:last].strip() or "[The document ends with the passage.]",
            "[For more, call expand with this start and end.]"
            * bool(text[:first].strip() or text[last:].strip()),
        ]
        return fit(lambda n: "\n".join(parts).rstrip(), 1, max_tokens)

    async def _read(self, stores: Stores, document: str) -> Entry:
        """Return a document. Raises InputError, which names others with an id or source like it."""
        async for records in self._records(stores, [record_key(document)]):
            for entry in await read_sources(stores, records):
                return entry
        names = {
            each.identity: f"{each.identity} {each.metadata.get('source')}".casefold()
            async for records in self._records(stores)
            for each in records
        }
        like = [name for name, text in names.items() if document.casefold() in text]
        like += get_close_matches(document, list(names)[:_MAX_COMPARED], 5, 0.4)
        nearest = ", ".join(map(q, list(dict.fromkeys(like))[:5])) or "none"
        raise InputError(
            f"there is no document {q(document[:80])}. The nearest ids: {nearest}. Call outline "
            "for all of them"
        )

    async def _read_some(self, stores: Stores, names: Sequence[str]) -> list[Entry]:
        """Return those of the documents with these ids that there are."""
        return await read_sources(stores, await stores.read_records(names))

    async def _records(
        self, stores: Stores, keys: Sequence[str] | None = None
    ) -> AsyncIterator[list[Record]]:
        """Yield the records with these keys, or all, that the retriever's filter lets through."""
        allowed = set(await stores.children.list_allowed()) if stores.children.has_filter else None
        async for records in stores.read_all_records(keys):
            yield [
                record
                for record in records
                if record.digest and (allowed is None or not allowed.isdisjoint(record.children))
            ]

    async def _candidates(self, stores: Stores, words: str, document: str) -> AsyncIterator[Entry]:
        """Yield the documents that may have these words."""
        keys = None
        if document:
            yield await self._read(stores, document)
            return
        if stores.keywords is not None:
            await prepare_keyword_index(stores, stores.keywords)
            keys = await call(stores.keywords.documents_with, words)
        async for records in self._records(stores, keys):
            for entry in await read_sources(stores, records):
                yield entry


def _passage(result: Entry, document: Entry | None) -> str:
    """Return a result below its label and the arguments that lead to it."""
    metadata, place = result.metadata, ""
    if document is not None:
        place = f"document={q(document.id)}"
        if result.span is not None:
            start, end = (each - document.offset for each in result.span)
            metadata = metadata | places(document, start, end)
            place += f", start={start}, end={end}"
    score = f"score={metadata[SCORE_KEY]:.2f}" if SCORE_KEY in metadata else ""
    return f"{label(metadata)} ({', '.join(filter(None, [place, score]))})\n{result.text.strip()}"


def _document_row(document: Entry) -> str:
    title = document.metadata.get("title") or document.text[:1000].strip().partition("\n")[0]
    size = _size(document, 0, len(document.text))
    return f"{q(document.id)}: {' '.join(str(title).split())[:60]} ({size})"


def _heading_rows(document: Entry) -> list[str]:
    """Return a row for a document, and one for each heading with the size of its section."""
    outline = Outline.of(document.text, metadata=document.metadata)
    rows = [
        f"{'  ' * len(path)}{heading.title} ({_size(document, heading.start, end)})"
        for heading, path, end in zip(
            outline.headings, outline.paths, outline.section_ends, strict=True
        )
    ]
    return [_document_row(document), *(rows or ["No headings: read it by lines."])]


def _size(document: Entry, start: int, end: int) -> str:
    lines = places(document, start, end)
    numbers = f"lines {lines['line_start']}–{lines['line_end']}, " if lines else ""
    return f"{numbers}{end - start:,} characters"


def _section(document: Entry, name: str) -> tuple[int, int]:
    """Return where the first section with this heading begins and ends, or one like it."""
    outline = Outline.of(document.text, metadata=document.metadata)
    names = [" > ".join(path) for path in outline.paths]
    heading = " ".join(name.split()).casefold()
    for is_like in (str.__eq__, str.endswith, str.__contains__):
        for number, path in enumerate(names):
            if is_like(path.casefold(), heading):
                return outline.headings[number].start, outline.section_ends[number]
    nearest = ", ".join(map(q, get_close_matches(name, names, 5, 0.3))) or "none"
    raise InputError(
        f"{q(document.id)} has no heading {q(name[:80])}. The nearest: {nearest}. Call "
        f"outline(document={q(document.id)}) for all of them"
    )


def _start_before(text: str, start: int, max_tokens: int) -> int:
    """Return where the first sentence begins that fits between there and `start`."""
    base = max(0, start - _WINDOW * max_tokens)
    window = text[base:start]
    least = sizer("tokens")(window).earliest(len(window), max_tokens)
    starts = [first for first, _ in sentence_spans(window) if first >= least]
    return base + min(starts, default=least)


def _end_after(text: str, end: int, max_tokens: int) -> int:
    """Return where the last sentence ends that fits between `end` and there."""
    window = text[end : end + _WINDOW * max_tokens]
    most = sizer("tokens")(window).furthest(0, max_tokens)
    ends = [last for _, last in sentence_spans(window) if last <= most]
    return end + max(ends, default=most)
