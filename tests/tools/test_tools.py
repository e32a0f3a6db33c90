"""The tools for agents: their answers, budgets, line numbers and errors, in both frameworks."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from rag_splitters import langchain, llama_index
from rag_splitters.parent_child.budget import count_tokens
from rag_splitters.parent_child.keywords.index import KeywordIndex
from rag_splitters.reading import line_range
from rag_splitters.reading.files import read_bytes
from rag_splitters.tools import index_tools
from rag_splitters.tools.grep import Pattern
from tests.support.counting import record_calls

TEA = """# Tea

Tea is a drink.

## Green tea

Green tea is poured at seventy degrees.
It is drunk without milk.

## Black tea

Black tea is poured with boiling
water. Some people add milk.
"""
FILES = {
    "tea.md": TEA,
    "pots.py": "# Pots for tea.\n\ndef boil_water(pot):\n    return pot.boil(degrees=100)\n",
    "windows.txt": "First line.\r\nThe second line has sugar.\r\n\r\nThe fourth line.\r\n",
    "notes/long.txt": "The kettle sings a little song. " * 400,
}
KIND = {name: "code" if name.endswith("py") else "text" for name in FILES}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search", {"question": "How hot must the water for green tea be?"}),
    ("search", {"question": "boil water", "filters": {"kind": "code"}}),
    ("search", {"question": "boil water", "filters": {"colour": "red"}}),
    ("search", {"question": " "}),
    ("grep", {"pattern": "boiling water"}),
    ("grep", {"pattern": r"degrees\s*=\s*\d+", "is_regex": True}),
    ("grep", {"pattern": "("}),
    ("grep", {"pattern": "(", "is_regex": True}),
    ("outline", {}),
    ("outline", {"document": "tea.md"}),
    ("outline", {"document": "tee.md"}),
    ("read", {"document": "tea.md", "start": 7, "end": 8}),
    ("read", {"document": "tea.md", "section": "green tea"}),
    ("read", {"document": "tea.md", "section": "white tea"}),
    ("read", {"document": "tea.md", "start": 99}),
    ("expand", {"document": "tea.md", "start": 39, "end": 104, "max_tokens": 300}),
    ("expand", {"document": "tea.md", "start": 39, "end": 10_000}),
]

Ask = Callable[..., str]


def sources() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (name, text, {"source": name, "kind": KIND[name], **line_range(text)})
        for name, text in FILES.items()
    ]


@pytest.fixture(scope="module")
def langchain_index() -> Iterator[langchain.ParentDocumentRetriever]:
    documents = [Document(text, id=name, metadata=own) for name, text, own in sources()]
    with langchain.parent_document_retriever(documents) as retriever:
        yield retriever


@pytest.fixture(scope="module")
def llama_index_index() -> Iterator[llama_index.ParentDocumentRetriever]:
    documents = [
        LlamaIndexDocument(id_=name, text=text, metadata=own) for name, text, own in sources()
    ]
    with llama_index.parent_document_retriever(documents) as retriever:
        yield retriever


@pytest.fixture(scope="module")
def ask(langchain_index: langchain.ParentDocumentRetriever) -> Ask:
    functions = {tool.name: tool.function for tool in index_tools(langchain_index)}

    def ask(name: str, **arguments: Any) -> str:
        return functions[name](**arguments)

    return ask


@pytest.mark.parametrize(("name", "arguments"), CALLS)
async def test_all_forms_give_the_same_text(
    name: str,
    arguments: dict[str, Any],
    langchain_index: langchain.ParentDocumentRetriever,
    llama_index_index: llama_index.ParentDocumentRetriever,
    ask: Ask,
) -> None:
    ours = {tool.name: tool for tool in langchain_index.as_tools()}[name]
    theirs = {tool.metadata.name: tool for tool in llama_index_index.as_tools()}[name]
    text = ask(name, **arguments)
    assert text
    assert ours.invoke(arguments) == text
    assert await ours.ainvoke(arguments) == text
    assert theirs.call(**arguments).content == text
    assert (await theirs.acall(**arguments)).content == text


def test_descriptions_and_parameters_are_the_same(
    langchain_index: langchain.ParentDocumentRetriever,
    llama_index_index: llama_index.ParentDocumentRetriever,
) -> None:
    tools = zip(langchain_index.as_tools(), llama_index_index.as_tools(), strict=True)
    for ours, theirs in tools:
        assert (ours.name, ours.description) == (theirs.metadata.name, theirs.metadata.description)
        own, other = (
            {name: (each["description"], each.get("default")) for name, each in fields.items()}
            for fields in (ours.args, theirs.metadata.get_parameters_dict()["properties"])
        )
        assert own == other
        assert own["max_tokens"][1] == (1000 if ours.name == "expand" else 2000)


def test_search_labels_passages_with_lines_and_the_arguments_of_expand(ask: Ask) -> None:
    answer = ask("search", question="Which tea is drunk without milk?", max_tokens=200)
    match = re.search(
        r'\[1\] tea\.md > .*lines? .*\(document="tea.md", start=(\d+), end=(\d+),', answer
    )
    assert match, answer
    start, end = int(match[1]), int(match[2])
    assert "without milk" in TEA[start:end]
    assert TEA[start:end] in answer
    more = ask("expand", document="tea.md", start=start, end=min(end, start + 20))
    assert TEA[min(end, start + 20) :].strip()[:20] in more


def test_passages_of_a_pdf_are_labelled_with_their_pages() -> None:
    pages = "\f".join(["Tea is hot. " * 40, "Milk is cold. " * 40, "Sugar is sweet. " * 40])
    own = {"source": "drinks.pdf", "page_start": 1, "page_end": 3}
    with langchain.parent_document_retriever([Document(pages, id="drinks", metadata=own)]) as index:
        ask = {tool.name: tool.function for tool in index_tools(index)}
        place = pages.index("Milk") + 280
        answer = ask["expand"]("drinks", place, place + 10, 200)
    assert answer.startswith("drinks.pdf, p. 2"), answer


def test_expand_shows_whole_sentences_around_a_passage(ask: Ask) -> None:
    place = {"document": "notes/long.txt", "start": 6400, "end": 6431}
    _, before, _, after, more = ask("expand", **place, max_tokens=300).splitlines()
    sentence = "The kettle sings a little song. "
    assert (before, after) == ((14 * sentence).strip(), (14 * sentence).strip())
    assert more == "[For more, call expand with this start and end.]"
    assert (
        ask("expand", document="tea.md", start=39, end=104).splitlines()[-1] == TEA.split("\n")[-2]
    )


def test_grep_finds_words_across_lines_and_says_their_numbers(ask: Ask) -> None:
    assert ask("grep", pattern="BOILING water").splitlines()[1:] == [
        "12: Black tea is poured with boiling",
        "13: water. Some people add milk.",
    ]
    assert "2: The second line has sugar." in ask("grep", pattern="sugar")
    assert "3: def boil_water(pot):" in ask("grep", pattern="boil_water")
    assert "No line has" in ask("grep", pattern="boil_wat")
    assert "3: def boil_water" in ask("grep", pattern="boil_wat", is_regex=True)
    assert "4:     return" in ask("grep", pattern=r"^ +return", is_regex=True)


@pytest.mark.parametrize(
    ("pattern", "is_regex"),
    [
        ("tea", False),
        ("Green tea is poured", False),
        ("the", False),
        ("...", False),
        (r"\btea\b", True),
        (r"\bgreen ?tea\b", True),
        (r"(?i)\bgreen tea\b", True),
        (r"\bsugar\b|\bmilk\b", True),
        (r"\bkettle sings\b", True),
        (r"\bBlack tea is \w+\b", True),
        (r"[^t]ea\b", True),
    ],
)
def test_keyword_index_leaves_no_match_out(
    pattern: str, is_regex: bool, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = ask("grep", pattern=pattern, is_regex=is_regex)
    monkeypatch.setattr(KeywordIndex, "documents_with", lambda self, text: None)
    assert sorted(looked_up.splitlines()) == sorted(
        ask("grep", pattern=pattern, is_regex=is_regex).splitlines()
    )


def test_grep_reads_only_documents_that_have_the_words(
    ask: Ask, langchain_index: langchain.ParentDocumentRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = record_calls(monkeypatch, Pattern, "lines")
    ask("grep", pattern="seventy degrees")
    assert [document.id for _, document in read] == ["tea.md"]
    ask("grep", pattern=r"\bsugar\.", is_regex=True)
    assert len(read) == 1 + len(FILES)
    ask("grep", pattern=r"\bsugar\b", is_regex=True)
    assert [document.id for _, document in read[1 + len(FILES) :]] == ["windows.txt"]


def test_grep_shows_the_part_of_a_long_line_with_the_match(ask: Ask) -> None:
    answer = ask("grep", pattern=r"(?<=\A.{6404})kettle", is_regex=True)
    assert "1: …" in answer
    assert len(answer) < 600
    assert answer.count("…") == 2


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_reading_on_as_the_answers_say_reads_everything(text: str, ask: Ask) -> None:
    name = next(name for name, each in FILES.items() if each == text)
    arguments: dict[str, Any] = {"document": name, "max_tokens": 10_000}
    if name != "notes/long.txt":
        arguments["max_tokens"] = 200
    parts = []
    while True:
        answer = ask("read", **arguments)
        head, _, body = answer.partition("\n")
        assert f'(document="{name}", start=' in head
        body, _, note = body.partition("\n[There is more: read(")
        parts.append(body)
        if not note:
            break
        arguments |= {key: int(value) for key, value in re.findall(r"(start|end)=(\d+)", note)}
    read = [line for part in parts for line in re.split("\r\n|\n", part)]
    assert read == re.split("\r\n|\n", text.rstrip("\r\n"))


def test_rows_of_an_outline_are_listed_page_by_page(ask: Ask) -> None:
    rows = ask("outline").splitlines()
    assert [row.partition(":")[0].strip('"') for row in rows] == sorted(FILES)
    assert rows[1:] == [
        '"pots.py": # Pots for tea. (lines 1–4, 71 characters)',
        '"tea.md": # Tea (lines 1–13, 181 characters)',
        '"windows.txt": First line. (lines 1–4, 61 characters)',
    ]
    assert ask("outline", start=4).splitlines() == rows[3:]
    assert ask("outline", document="tea.md").splitlines() == [
        rows[2],
        "  Tea (lines 1–13, 181 characters)",
        "    Green tea (lines 5–9, 81 characters)",
        "    Black tea (lines 10–13, 76 characters)",
    ]


@pytest.mark.parametrize("section", ["Green tea", "tea > green TEA", "Tea > Green tea", "reen"])
def test_sections_are_found_by_their_headings(section: str, ask: Ask) -> None:
    answer = ask("read", document="tea.md", section=section)
    assert "lines 5–9" in answer
    assert "without milk" in answer
    assert "Black" not in answer


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("read", {"document": "tea"}, 'The nearest ids: "tea.md". Call outline'),
        ("expand", {"document": "tea.ms", "start": 0, "end": 1}, '"tea.md"'),
        ("read", {"document": "tea.md", "section": "Grean tea"}, '"Tea > Green tea"'),
        ("read", {"document": "tea.md", "start": 20, "end": 30}, "has lines 1 to 13"),
        ("expand", {"document": "tea.md", "start": 5, "end": 999}, "has positions 0 to 181"),
        ("grep", {"pattern": "["}, "Try fewer words, is_regex=true"),
        ("grep", {"pattern": "[", "is_regex": True}, "not a valid regular expression"),
        ("grep", {"pattern": "x" * 501}, "1 to 500 characters, got 501"),
        ("search", {"question": "tea", "filters": {"year": 1}}, "kind, line_end, line_start"),
        ("search", {"question": "tea", "filters": {"kind": {"$is": 1}}}, "where operator is $eq"),
        ("search", {"question": "tea", "max_tokens": -5}, "at least 200, got -5"),
        ("expand", {"document": "tea.md", "start": 0, "end": 9, "max_tokens": -5}, "200, got -5"),
        ("outline", {"start": 0}, "start must be a whole number of at least 1"),
        ("outline", {"start": 99}, "There are only 4 rows"),
        ("read", {"document": "tea.md", "start": "1", "end": "3"}, "lines 1–3"),
        ("read", {"document": 5}, "Error: document must be a string, got 5"),
        ("read", {"doc": "tea.md"}, "needs the parameter 'document'"),
        ("expand", {"document": "tea.md", "start": 0, "end": None}, "end must be a whole number"),
    ],
)
def test_errors_say_what_to_do(name: str, arguments: dict[str, Any], says: str, ask: Ask) -> None:
    assert says in ask(name, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [r"(?:e|e)+b", r"^(e|ee)+$"])
async def test_pattern_cannot_hang_the_server(
    pattern: str,
    langchain_index: langchain.ParentDocumentRetriever,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rag_splitters.tools.grep._SECONDS", 0.5)
    langchain_index.add_documents([Document("e" * 5000 + "!", id="hostile.txt")])
    grep = next(tool for tool in langchain_index.as_tools() if tool.name == "grep")
    beats, began = 0, time.monotonic()
    task = asyncio.create_task(grep.ainvoke({"pattern": pattern, "is_regex": True}))
    while not task.done():
        await asyncio.sleep(0.05)
        beats += 1
    seconds = time.monotonic() - began
    langchain_index.delete(["hostile.txt"])
    assert "Some documents were not looked at" in await task
    assert seconds < 60
    assert beats > 5


def test_filter_of_the_retriever_holds_for_all_tools() -> None:
    documents = [
        Document(f"The secret of {team} is {word}.", id=team, metadata={"team": team})
        for team, word in [("red", "paprika"), ("blue", "thyme")]
    ]
    first = langchain.parent_document_retriever(
        documents, search_kwargs={"filter": {"team": "red"}}
    )
    nodes = [
        LlamaIndexDocument(id_=each.id, text=each.page_content, metadata=each.metadata)
        for each in documents
    ]
    filters = MetadataFilters(filters=[MetadataFilter(key="team", value="red")])
    second = llama_index.parent_document_retriever(nodes, filters=filters)
    for index in (first, second):
        ask = {tool.name: tool.function for tool in index_tools(index)}
        answers = [
            ask["search"]("secret"),
            ask["search"]("secret", filters={"team": "blue"}),
            ask["search"]("secret", filters={"team": {"$ne": "red"}}),
            ask["grep"]("thyme"),
            ask["grep"]("secret"),
            ask["grep"]("secret", document="blue"),
            ask["outline"](),
            ask["read"]("blue"),
            ask["expand"]("blue", 0, 1),
        ]
        assert "paprika" in answers[0]
        assert "there is no document" in answers[7]
        assert not any("thyme." in answer or "of blue" in answer for answer in answers), answers


def test_tools_write_nothing(langchain_index: langchain.ParentDocumentRetriever, ask: Ask) -> None:
    def rows() -> dict[str, Any]:
        store = langchain_index.docstore
        keys = sorted(store.yield_keys())
        return dict(zip(keys, store.mget(keys), strict=True))

    before, count = rows(), langchain_index.vectorstore._collection.count()  # type: ignore[attr-defined]
    for name, arguments in CALLS:
        ask(name, **arguments)
    assert rows() == before
    assert langchain_index.vectorstore._collection.count() == count  # type: ignore[attr-defined]


LINES = st.lists(
    st.text(st.sampled_from("ab c.é茶\u2028\x85"), max_size=12), min_size=1, max_size=12
)
BREAKS = st.sampled_from(["\n", "\r\n", "\r"])
SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@pytest.mark.slow
@SETTINGS
@given(LINES, BREAKS, st.sampled_from(["a", "b c", "茶", "é", "ab"]))
@example(["a", "", "a"], "\r", "a")
def test_numbers_of_lines_are_those_of_the_file(
    lines: list[str], line_break: str, words: str
) -> None:
    """Also in a document that begins in the middle of its file."""
    whole = line_break.join(["head", "ab a", *lines])
    (source,) = read_bytes(whole.encode(), "file.txt")
    part = whole[len("head" + line_break) :]
    own = {"source": "part", "line_start": 2, "line_end": int(source.metadata["line_end"])}
    documents = [
        Document(whole, id="whole", metadata=dict(source.metadata)),
        Document(part, id="part", metadata=own),
    ]
    numbered = dict(enumerate(re.split("\r\n|\n|\r", whole), 1))
    with langchain.parent_document_retriever(documents) as retriever:
        ask = {tool.name: tool.function for tool in index_tools(retriever)}
        for document, first in (("whole", 1), ("part", 2)):
            found = re.findall(r"^(\d+): (.*)$", ask["grep"](words, document=document), re.M)
            expected = re.compile(rf"(?<!\w){words}(?!\w)" if words != "茶" else words)
            assert all(
                numbered[int(number)] == line
                for number, line in found
                if "\x85" not in line and "\u2028" not in line
            )
            assert {int(number) for number, _ in found} >= {
                number
                for number, line in numbered.items()
                if number >= first and expected.search(line)
            }
            for number in range(first, len(numbered) + bool(numbered[len(numbered)])):
                answer = ask["read"](document, start=number, end=number)
                assert answer.partition("\n")[2] == numbered[number]
                assert f"line {number} (" in answer


@pytest.mark.slow
@SETTINGS
@given(
    st.lists(st.text(max_size=400), min_size=1, max_size=4),
    st.integers(200, 600),
    st.integers(0, 400),
    st.booleans(),
)
@example(["x" * 5000, "茶" * 900, "\ud800" * 50], 200, 3, True)
@example(["<|endoftext|> " * 300, "\n" * 999, " " * 9000 + "a"], 200, 0, False)
def test_answers_stay_in_their_budgets(
    texts: list[str], max_tokens: int, place: int, is_long: bool
) -> None:
    documents = [
        Document(text * (20 if is_long else 1), id=f"{number} {text[:200]}")
        for number, text in enumerate(texts)
    ]
    name = documents[0].id
    with langchain.parent_document_retriever(documents) as retriever:
        ask = {tool.name: tool.function for tool in index_tools(retriever)}
        answers = [
            ask["search"](texts[0] or "a", max_tokens=max_tokens),
            ask["search"]("a", filters={"a" * place: 1}, max_tokens=max_tokens),
            ask["grep"](texts[-1][:300] or "a", max_tokens=max_tokens),
            ask["grep"](".", is_regex=True, max_tokens=max_tokens),
            ask["outline"](max_tokens=max_tokens),
            ask["outline"](name, max_tokens=max_tokens),
            ask["outline"](texts[-1], max_tokens=max_tokens),
            ask["read"](name, max_tokens=max_tokens),
            ask["read"](name, section=texts[-1], max_tokens=max_tokens),
            ask["expand"](name, min(place, len(documents[0].page_content)), place, max_tokens),
        ]
    for answer in answers:
        assert 0 < count_tokens(answer) <= max_tokens, answer
        answer.encode()
