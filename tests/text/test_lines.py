"""What a line is, and that every strategy agrees about it."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_splitters import (
    AgenticChunker,
    AutoChunker,
    Chunker,
    ClusterChunker,
    ContentAwareChunker,
    ContextualChunker,
    EmbeddingChunker,
    EntityChunker,
    HierarchicalChunker,
    HybridChunker,
    KeywordChunker,
    ModalityChunker,
    PageChunker,
    ParagraphChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
    TableChunker,
    TitledChunker,
    TopicChunker,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.structure.block import TextFormat
from rag_splitters.structure.blocks.plain import plain_headings
from rag_splitters.text import leads
from rag_splitters.text.leads import lead_start
from rag_splitters.text.lines import NO_MARK, is_bullet, is_item, line_kind

LETTERS = ("a", "b", "c", "d", "e", "f")
NUMBERS = ("1", "2", "3", "4", "5", "6")
ROMAN = ("i", "ii", "iii", "iv", "v", "vi")
MARKS: dict[str, tuple[str, ...]] = {
    **{mark: (mark,) * 6 for mark in "-*+•◦▪‣·●○■□◆►✓☐"},
    "1.": tuple(f"{number}." for number in NUMBERS),
    "1)": tuple(f"{number})" for number in NUMBERS),
    "(1)": tuple(f"({number})" for number in NUMBERS),
    "[1]": tuple(f"[{number}]" for number in NUMBERS),
    "1.1": tuple(f"1.{number}" for number in NUMBERS),
    "1.1.": tuple(f"1.{number}." for number in NUMBERS),
    "a.": tuple(f"{letter}." for letter in LETTERS),
    "A.": tuple(f"{letter.upper()}." for letter in LETTERS),
    "a)": tuple(f"{letter})" for letter in LETTERS),
    "A)": tuple(f"{letter.upper()})" for letter in LETTERS),
    "(a)": tuple(f"({letter})" for letter in LETTERS),
    "i.": tuple(f"{number}." for number in ROMAN),
    "(iv)": tuple(f"({number})" for number in ROMAN),
    "I.": tuple(f"{number.upper()}." for number in ROMAN),
    "①": tuple("①②③④⑤⑥"),
    "一、": tuple(f"{number}、" for number in "一二三四五六"),
    "- [ ]": ("- [ ]",) * 6,
}
SENTENCES = (
    "The kettle is filled from the tap until the mark is reached.",
    "It must not be too full, or it will boil over and put out the flame.",
    "Nobody leaves it alone while it is on the stove in the kitchen.",
)
FORMATS: tuple[TextFormat, ...] = (
    *("markdown", "text", "rst", "asciidoc", "org", "latex", "man", "mail"),
)
STRATEGIES: list[Chunker] = [
    RecursiveChunker(chunk_size=260),
    SentenceChunker(chunk_size=260),
    ParagraphChunker(chunk_size=260),
    ContentAwareChunker(chunk_size=260),
    HierarchicalChunker(chunk_size=260),
    AutoChunker(chunk_size=260),
    PageChunker(chunk_size=260),
    KeywordChunker(keywords=("Nowhere",), chunk_size=260),
    TableChunker(chunk_size=260),
    ModalityChunker(text=RecursiveChunker(chunk_size=260)),
    TitledChunker(chunker=RecursiveChunker(chunk_size=260)),
    ContextualChunker(
        llm=lambda prompt: "Tea.", chunker=RecursiveChunker(chunk_size=260), count_context=False
    ),
    HybridChunker(stages=(ParagraphChunker(), SentenceChunker(chunk_size=260))),
    SemanticChunker(embeddings=HashingEmbeddings(), chunk_size=260),
    EmbeddingChunker(embeddings=HashingEmbeddings(), chunk_size=260),
    ClusterChunker(embeddings=HashingEmbeddings(), chunk_size=260),
    EntityChunker(ner=lambda text: [(0, 3, "WORD")], chunk_size=260),
    TopicChunker(chunk_size=260),
    AgenticChunker(llm=lambda prompt: "1", chunk_size=260),
    *(ContentAwareChunker(format=each, chunk_size=260) for each in FORMATS),
]
NAMES = [f"{type(chunker).__name__} {getattr(chunker, 'format', '')}" for chunker in STRATEGIES]


def items_of(marks: tuple[str, ...], width: int) -> list[str]:
    """Items of two or three sentences; a width wraps them."""
    items = []
    for number, mark in enumerate(marks):
        words, lines = f"{mark} {' '.join(SENTENCES[: 2 + number % 2])}".split(" "), [""]
        for word in words:
            if width and len(lines[-1]) + len(word) > width:
                lines.append("")
            lines[-1] += f" {word}" if lines[-1] else word
        items.append("\n".join(lines))
    return items


def test_there_are_thirty_marks() -> None:
    assert len(MARKS) >= 30


@pytest.mark.parametrize("width", [0, 70], ids=["long lines", "wrapped"])
@pytest.mark.parametrize("chunker", STRATEGIES, ids=NAMES)
def test_items_that_fit_are_not_cut(chunker: Chunker, width: int) -> None:
    cut = []
    for marks in MARKS.values():
        items = items_of(marks, width)
        text = f"{SENTENCES[0]} {SENTENCES[1]}\n\n" + "\n".join(items) + f"\n\n{SENTENCES[2]}"
        chunks = [chunk.text for chunk in chunker.chunk(text)]
        cut += [item for item in items if not any(item in chunk for chunk in chunks)]
    assert cut == []


def test_own_word_begins_a_heading_where_words_have_no_ends() -> None:
    titles = [
        block.title for block in plain_headings("前言本书\n\n茶。\n\nTeapot\n", ("前言", "tea"))
    ]
    assert titles == ["前言本书"]


@pytest.mark.parametrize("gap", ["\n", "\n\n"])
@pytest.mark.parametrize(
    "heading",
    [
        *("Chapter 3", "Article IV: Rent", "Section 2.1", "§ 2a Rent", "Appendix: Rent"),
        *("Глава 3", "h2. Rent", "==Rent==", "=head2 Rent"),
    ],
)
def test_heading_of_the_outline_keeps_with_what_follows(heading: str, gap: str) -> None:
    text = f"{SENTENCES[0]}\n\n{heading}{gap}{SENTENCES[1]}\n{SENTENCES[2]}\n"
    title = heading.removeprefix("h2. ").removeprefix("=head2 ").strip("=")
    assert [block.title for block in plain_headings(text)] == [title]
    for size in range(len(SENTENCES[0]) + len(heading) + 2, 160):
        chunks = RecursiveChunker(chunk_size=size).chunk(text)
        assert not any(chunk.text.endswith(heading) for chunk in chunks), size


def test_section_with_a_full_stop_keeps_with_what_follows() -> None:
    heading, sentence = (
        f"{SENTENCES[0]}\n\n{line}\n\n{SENTENCES[1]}"
        for line in ("Section 1 -- Water.", "Part of it. Water.")
    )
    for size in range(80, 160):
        chunks = RecursiveChunker(chunk_size=size).chunk(heading)
        assert not any(chunk.text.endswith("Water.") for chunk in chunks), size
    assert RecursiveChunker(chunk_size=100).chunk(sentence)[0].text.endswith("Water.")


@pytest.mark.parametrize(
    ("line", "fence", "is_lead"),
    [
        ("To install it, run", "\n\n```\npip", True),
        ("It is the same as `tea`", "\n```python\ntea", True),
        ("It is the same as `tea`", "\n```\ntea", False),
        ("It is the same.", "\n\n~~~\ntea", False),
        ("* `tea`", "\n\n~~~\ntea", False),
        ("```sh\ntea\n```", "\n\n~~~\ntea", False),
    ],
)
def test_sentence_that_goes_on_in_a_fence_keeps_with_it(
    line: str, fence: str, is_lead: bool
) -> None:
    text = f"{SENTENCES[0]}\n\n{line}{fence}"
    cut = len(text) - len(fence.lstrip())
    assert (lead_start(text, 0, cut) < cut) is is_lead


def test_title_after_a_page_break_keeps_with_what_follows() -> None:
    text = f"{SENTENCES[0]}\n\n\f\nTea\n\n{SENTENCES[1]}"
    assert lead_start(text, 0, text.index(SENTENCES[1])) == text.index("Tea")


@pytest.mark.parametrize("term", [r"\fB\-1\fP", r".B \-1", ".BR tea (1)"])
def test_term_of_a_manual_page_keeps_with_its_text(term: str) -> None:
    text = f"{SENTENCES[0]}\n.TP \n{term}\n{SENTENCES[1]}\n"
    assert lead_start(text, 0, text.index(SENTENCES[1])) == text.index(".TP")


def test_header_keeps_with_its_columns() -> None:
    header = "Tea    Minutes\n----   -------\n"
    text = f"{SENTENCES[0]}\n\nTeas\n====\n\n{header}green  three\nblack  five\n"
    assert lead_start(text, 0, text.index("green")) == text.index("Teas")
    border = "=====  =======\n"
    text = f"{SENTENCES[0]}\n\n{border}Tea    Minutes\n{border}green  three\n{border}\nIt ends."
    assert lead_start(text, 0, text.index("green")) == text.index(border)
    assert lead_start(text, 0, text.index("It ends")) == text.index("It ends")


def test_comment_behind_code_is_no_lead() -> None:
    text = (
        "int teas[] = {\n    0, 1, /* green */\n    2, 3, /* black */\n    4, 5, /* white */\n};\n"
    )
    row = text.index("4, 5") - 4
    assert lead_start(text, 0, row) == row
    assert lead_start("a = 1;\n/* Two\n   teas. */\nb = 2;", 0, 26) == 7


def test_numbered_heading_keeps_with_the_one_below_it() -> None:
    text = f"{SENTENCES[0]}\n\n4. Rent, water and rubbish\n\n4.1. Rent\n\n{SENTENCES[1]}"
    for size in range(70, 160):
        chunks = RecursiveChunker(chunk_size=size).chunk(text)
        assert not any(chunk.text.endswith("rubbish") for chunk in chunks), size


def test_stars_begin_a_heading_of_org_or_an_item_of_a_wiki() -> None:
    text = f"{SENTENCES[0]}\n\n** Tea\n{SENTENCES[1]}\n\n{SENTENCES[2]}"
    items = "* tea:\n" + "** one of the pots of this kind\n" * 9
    for size in range(70, 140):
        chunks = RecursiveChunker(chunk_size=size).chunk(text)
        assert not any(chunk.text.endswith("Tea") for chunk in chunks), size
        chunks = RecursiveChunker(chunk_size=size).chunk(items)
        assert all(chunk.text.startswith(("* tea", "** one")) for chunk in chunks)
        assert len(chunks[1].text) > size - 32


@pytest.mark.parametrize("mark", ["-", "3)", "(iv)", "•"])
@pytest.mark.parametrize("strategy", [RecursiveChunker, SentenceChunker, ContentAwareChunker])
def test_mark_stays_with_a_word_that_does_not_fit(strategy: type[Chunker], mark: str) -> None:
    text = f"{SENTENCES[0]}\n\n{mark} {'x' * 200} y\n{mark} {'z' * 200}"
    chunks = [chunk.text for chunk in strategy(chunk_size=100).chunk(text)]
    assert sum(chunk.startswith((f"{mark} xxx", f"{mark} zzz")) for chunk in chunks) == 2


def test_lead_in_with_a_comma_keeps_with_its_list() -> None:
    text = f"{SENTENCES[0]} In such a case,\n\n* wait;\n\n* pour it out.\n"
    for size in range(text.index(",") + 1, text.index(";")):
        assert RecursiveChunker(chunk_size=size).chunk(text)[0].text == SENTENCES[0]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("## Tea", "heading"),
        ("= Tea", "heading"),
        ("==Tea==", "heading"),
        ("== tea", "heading"),
        ("** Tea", "heading"),
        ("====  ====", "rule"),
        ("----   -----", "rule"),
        ("**Tea", "text"),
        ("==tea", "text"),
        (r"\subsection{Tea}", "heading"),
        ("**Tea**", "label"),
        (".. note:: Tea", "label"),
        ("```python", "label"),
        ("```", "fence"),
        ("-----", "underline"),
        ("*****", "underline"),
        ("_____", "underline"),
        ("=item tea", "label"),
        ("| --- | --- |", "rule"),
        ("# noqa: E501", "heading"),
        ("// Tea", "comment"),
        ("<!-- Tea -->", "anchor"),
        ("[source,python]", "anchor"),
        ("[..., 'tea']", "text"),
        ("[Tea is hot.]", "comment"),
        ("@cached", "comment"),
        ("• Tea", "item"),
        ("(iv) Tea", "item"),
        ("— Tea?", "item"),
        ("Tea is hot.", "text"),
        ("1990 was wet.", "text"),
        ("", "text"),
    ],
)
def test_line_is_of_a_kind(line: str, kind: str) -> None:
    assert line_kind(line) == kind


def test_word_or_speech_is_no_item() -> None:
    assert not any(map(is_item, ("3.14 is pi.", "e. g. tea", "a b", "-5 degrees", "1990. It", "")))


@pytest.mark.parametrize("whole", ["```\nOne. Two.\nThree. Four.\n```", "- One. Two. Three. Four."])
def test_overlap_begins_inside_nothing_unbreakable(whole: str) -> None:
    text = f"{SENTENCES[0]}\n\n{whole}\n\n{SENTENCES[1]} {SENTENCES[2]}"
    for overlap in range(5, 60, 5):
        chunks = SentenceChunker(chunk_size=100, chunk_overlap=overlap).chunk(text)
        start = text.index(whole)
        assert not any(start < chunk.start < start + len(whole) for chunk in chunks), overlap


@pytest.mark.parametrize(
    ("title", "following", "is_lead"),
    [
        ("Green tea", "It grows on hills where it is cool.", True),
        ("GREEN TEA", "It is.", True),
        ("Green tea", "It is.", False),
        ("Green tea", "- hot", True),
    ],
)
def test_title_leads_a_longer_line_or_an_item(title: str, following: str, is_lead: bool) -> None:
    text = f"They drank it at noon.\n\n{title}\n\n{following}"
    cut = text.index(following)
    assert lead_start(text, 0, cut) == (text.index(title) if is_lead else cut)


@pytest.mark.parametrize("question", ["Which one do you drink?", "何を飲む？"])
def test_question_stays_with_its_options(question: str) -> None:
    text = (
        f"They drank it at noon.\n\n{question}\n\n1. green tea\n2. water\n\nAnswer: tea\n\nA: It."
    )
    start = text.index(question)
    assert lead_start(text, 0, text.index("1.")) == start
    assert lead_start(text, 0, text.index("Answer")) == start
    assert lead_start(text, 0, text.index("A: It")) == text.index("A: It")


@pytest.mark.parametrize(
    ("line", "following", "is_lead"),
    [
        ("2. Green tea", "It grows on hills where it is cool, and is dried soon.", True),
        ("2. Green tea", "It grows on hills.", False),
        ("2. Green tea", "2.1. Leaves", True),
        ("2. Green tea", "3. Black tea", False),
        ("Green tea", "It grows on hills where it is cool, and is dried soon.", False),
    ],
)
def test_numbered_line_between_lines_may_be_a_heading(
    line: str, following: str, is_lead: bool
) -> None:
    text = f"They drank it at noon.\n{line}\n{following}\nThe others slept."
    cut = text.index(following)
    assert lead_start(text, 0, cut) == (text.index(line) if is_lead else cut)


@pytest.mark.parametrize("line", ["Tea", "  tea is", "TEA, hot", "xviixviii) x"])
def test_most_lines_need_no_look_at_the_marks(line: str) -> None:
    assert NO_MARK.match(line)


@given(st.from_regex(r"[ \t]{0,3}[A-Za-z]{1,7}[.) a-z]{0,3} ?\w?", fullmatch=True))
@example("xviii) eighteen")
@example("viii. eight")
@example("a) a pot")
def test_line_without_a_mark_is_no_item(line: str) -> None:
    assert not (NO_MARK.match(line) and (is_item(line) or is_bullet(line)))


TEXTS = (
    "Tea is hot.;Is it?;Chapter 3.;CHAPTER IV. Tea.;Section 2: Tea.;1. Tea.;Tea,;IV. Tea.;h1. Tea.;"
    '"No," he said.;第三回 茶”;Appendix: Tea.;art. 3.;Note:;- a.;====;# Tea;a) tea.;    x(y);|;```;'
    "The long line that goes on and on to the end.;Part 2!;Tea and water…;'tis hot!;¿qué?;A: tea.;"
    "Q: tea?;hm. no.;*/"
).split(";")


@given(
    st.lists(st.tuples(st.sampled_from(TEXTS), st.sampled_from(["\n", "\n\n", " ", "\n  "]))),
    st.integers(0, 60),
)
@example([("Chapter 3.", "\n\n"), ("Tea is hot.", "\n\n")], 0)
@example([("Is it?", "\n\n"), ("- a.", "\n")], 0)
@example([("Appendix: Tea.", "\n\n"), ("Tea is hot.", "\n\n")], 0)
@example([("第三回 茶”", "\n\n"), ("Tea is hot.", "\n\n")], 0)
def test_quick_answer_changes_no_lead(parts: list[tuple[str, str]], low: int) -> None:
    text = "".join(line + gap for line, gap in parts)
    cuts = range(min(low, len(text)) + 1, len(text))
    starts = [lead_start(text, low, cut) for cut in cuts]
    with patch.object(leads, "_ends_prose", return_value=False):
        assert starts == [lead_start(text, low, cut) for cut in cuts]
