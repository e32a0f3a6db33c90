"""Files as documents of both frameworks, with their page numbers through any strategy."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core import SimpleDirectoryReader
from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from rag_splitters import langchain, llama_index
from rag_splitters.langchain import (
    FileLoader,
    RecursiveTextSplitter,
    parent_document_retriever,
)
from rag_splitters.llama_index import FileReader
from rag_splitters.parent_child.options import Retrieve
from rag_splitters.reading import line_range, locate
from rag_splitters.reading.files import read_sources, read_text
from rag_splitters.reading.places import draw_page
from rag_splitters.reading.typesetting import inner_lines, without_hyphens
from rag_splitters.span import Chunk
from tests.reading.test_lines import check_lines
from tests.support.cases import CASES
from tests.support.logs import own_messages
from tests.support.pdfs import make_pdf


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    """Three pages; the text of the second runs on to the third."""
    path = tmp_path / "report.pdf"
    make_pdf(path, ["The first page is short.", "The second page goes on", "to the third page."])
    return path


def test_chunks_of_file_loader_know_their_pages(pdf: Path) -> None:
    (document,) = FileLoader(pdf).load()
    assert document.id == pdf.as_posix()
    assert document.metadata == {"source": pdf.as_posix(), "page_start": 1, "page_end": 3}
    chunks = RecursiveTextSplitter(chunk_size=50).split_documents([document])
    assert [(c.page_content, c.metadata["page_start"], c.metadata["page_end"]) for c in chunks] == [
        ("The first page is short.\n\fThe second page goes on", 1, 2),
        ("to the third page.", 3, 3),
    ]


def test_loaders_read_folders_and_say_what_they_passed_over(
    pdf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = pdf.parent
    (folder / "deep").mkdir()
    (folder / "deep" / "a.rs").write_text("fn main() {}")
    (folder / "photo.png").write_bytes(b"\0")
    (folder / ".hidden.md").write_text("secret")
    names = [(folder / "report.pdf").as_posix(), (folder / "deep" / "a.rs").as_posix()]
    assert [document.id for document in FileLoader(folder).lazy_load()] == names
    reader = FileReader()
    for load in (reader.load_data, reader.lazy_load_data):
        documents = load(folder, extra_info={"team": "a"})
        pairs = [(each.id_, each.metadata["team"]) for each in documents]
        assert pairs == [(name, "a") for name in names]
    assert own_messages(caplog) == [f"{folder}: skipped 1 file: 1 .png"] * 3
    assert next(reader.lazy_load_data(folder)).id_ == names[0]
    lazily = asyncio.run(reader.alazy_load_data(folder))
    assert [each.id_ for each in lazily] == names


@pytest.mark.parametrize("name", CASES)
def test_every_strategy_knows_the_pages_and_lines(name: str, pdf: Path) -> None:
    """In the core and in both frameworks, with no option set."""
    core = CASES[name][1 if name == "hierarchical" else 0]
    parameters = {each: getattr(core, each) for each in core.model_fields_set}
    kind = type(core).__name__.removesuffix("Chunker")
    splitter = getattr(langchain, f"{kind}TextSplitter")(**parameters)
    parser = getattr(llama_index, f"{kind}NodeParser")(**parameters, count_metadata=False)
    source = next(read_sources(pdf))
    metadata = {**source.metadata, **line_range(source.text)}
    own = core.chunk(source.text, metadata=metadata)
    for chunk in own:
        check_lines(source.text, chunk.start, chunk.end, dict(chunk.metadata))
    found = [(chunk.start, chunk.metadata) for chunk in own]
    chunks = splitter.split_documents(FileLoader(pdf).load())
    found += [(chunk.metadata["start_index"], chunk.metadata) for chunk in chunks]
    reader = SimpleDirectoryReader(str(pdf.parent), file_extractor={".pdf": FileReader()})
    nodes = parser.get_nodes_from_documents(reader.load_data())
    found += [(node.start_char_idx, node.metadata) for node in nodes]
    assert "page_start" in nodes[0].excluded_embed_metadata_keys
    assert "page_start" in nodes[0].excluded_llm_metadata_keys
    for start, metadata in found:
        assert metadata["page_start"] == source.text.count("\f", 0, start) + 1
        assert metadata["page_start"] <= metadata["page_end"] <= 3


@pytest.mark.parametrize(
    ("retrieve", "pages"), [("parents", (1, 2)), ("children", (2, 2)), ("passages", (1, 3))]
)
def test_results_know_their_pages(retrieve: Retrieve, pages: tuple[int, int], pdf: Path) -> None:
    retriever = parent_document_retriever(
        FileLoader(pdf).load(),
        child_splitter=RecursiveTextSplitter(chunk_size=25),
        parent_splitter=RecursiveTextSplitter(chunk_size=60),
        child_metadata_fields=["source"],
        retrieve=retrieve,
    )
    (result,) = retriever.invoke("The second page goes on", k=1)
    assert (result.metadata["page_start"], result.metadata["page_end"]) == pages


def test_pages_that_the_text_contradicts_are_not_counted() -> None:
    metadata = {"page_start": 4, "page_end": 9}
    chunks = RecursiveTextSplitter(chunk_size=6).create_documents(["one\ftwo three"], [metadata])
    assert {(c.metadata["page_start"], c.metadata["page_end"]) for c in chunks} == {(4, 9)}


PROSE = "Every page has a text of its own about the {}."
TOPICS = "sea sky rain snow wind".split()


def cleaned(tmp_path: Path, pages: Sequence[str]) -> list[str]:
    """The pages of a PDF as they are read, without blank lines."""
    make_pdf(tmp_path / "made.pdf", pages)
    return [page.strip() for page in read_text(tmp_path / "made.pdf").split("\f")]


@pytest.mark.parametrize(
    ("head", "foot"),
    [
        ("A Report on the Weather", "- {n} -"),
        ("The Weather                {n}", "Printed in Ghent"),
        ("Page {n} of 5", "Draft of 1 May"),
        ("Confidential\nDepartment of Clouds", "{roman}"),
        ("Chapter {n}0: the {topic}          {page}", ""),
    ],
)
def test_running_heads_and_page_numbers_are_dropped(tmp_path: Path, head: str, foot: str) -> None:
    pages = [
        "\n".join(
            part.format(
                n=number, page=number + 7, roman="i ii iii iv v".split()[number], topic=topic
            )
            for part in (head, PROSE.format(topic), foot)
        )
        for number, topic in enumerate(TOPICS)
    ]
    expected = [PROSE.format(topic) for topic in TOPICS]
    if head.startswith("Chapter"):  # these heads differ: numbers elsewhere tell what they are
        more = [PROSE.format(topic) for topic in ("sun", "heat", "hail", "fog", "ice")]
        pages += [f"Notes          {number}\n{page}" for number, page in enumerate(more, 12)]
        expected += more
    assert cleaned(tmp_path, pages) == expected


@pytest.mark.parametrize(
    "pages",
    [
        ["Figure 1\n" + PROSE],
        ["1 Introduction\n" + PROSE, "2 Method\n" + PROSE + ".", "3 Results\n" + PROSE + "!"],
        ["Results\n" + PROSE + sign for sign in "?!"],
        ["Tea\n" * (sign < "d") + PROSE + sign for sign in "abcdefg"],
        ["1", "2", "3"],
    ],
    ids=["one page", "numbered headings", "two equal headings", "3 of 7", "nothing else"],
)
def test_text_that_is_no_running_head_stays(tmp_path: Path, pages: list[str]) -> None:
    assert cleaned(tmp_path, pages) == pages


def test_words_are_joined_where_they_were_divided(tmp_path: Path) -> None:
    lines = (
        "A well-known author wrote an intro-",
        "duction to light-weight bicycles, and a sec-",
        "ond one, which is less well-",
        "known, about DNA-",
        "based methods, by Jean-",
        "Luc, see example.org/light-",
        "weight; in pre-",
        "and post-war times, 1914-",
        "1918. Last word of the page: transpor-",
    )
    first, second = cleaned(tmp_path, ["\n".join(lines), "tation ends here."])
    assert first.split("\n") == [
        "A well-known author wrote an introduction",
        "to light-weight bicycles, and a second",
        "one, which is less well-known,",
        "about DNA-based",
        "methods, by Jean-Luc,",
        "see example.org/light-weight;",
        "in pre-",
        "and post-war times, 1914-1918.",
        "Last word of the page: transportation",
    ]
    assert second == "ends here."


def test_pages_without_text_are_named_in_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "mixed.pdf"
    canvas = Canvas(str(path))
    canvas.drawString(72, 780, "A page of text, and a blank page.")
    canvas.showPage()
    canvas.showPage()
    canvas.drawInlineImage(Image.new("RGB", (9, 9)), 72, 700)
    canvas.save()
    assert read_text(path) == "A page of text, and a blank page.\n\f\n\f"
    assert "mixed.pdf: pages [3] hold images and no text; run text recognition" in caplog.text


def test_pdf_is_read_in_several_threads(pdf: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(read_text, [pdf] * 20))) == 1


@pytest.mark.parametrize("text", ["Order of tea", ""])
def test_values_of_a_form_follow_its_page(text: str, tmp_path: Path) -> None:
    path = tmp_path / "order.pdf"
    canvas = Canvas(str(path))
    canvas.drawString(72, 750, text)
    canvas.acroForm.textfield(name="kind", tooltip="Kind of tea", value="Séncha", x=72, y=700)
    canvas.acroForm.textfield(name="note", x=72, y=650)
    canvas.acroForm.checkbox(name="Milk", checked=True, x=72, y=600)
    canvas.acroForm.checkbox(name="Sugar", x=72, y=550)
    canvas.showPage()
    canvas.drawString(72, 750, "Thank you.")
    canvas.save()
    (source,) = read_sources(path)
    page = f"{text}\nKind of tea: Séncha\nMilk: Yes"
    assert source.text == f"{page}\n\fThank you."
    start = source.text.index("Milk")
    milk = Chunk("Milk: Yes", start, start + len("Milk: Yes"), {}, "")
    assert [(box.page, box.left, box.bottom) for box in locate(path, milk)] == [(1, 69, 597)]
    picture = Image.open(BytesIO(draw_page(path.read_bytes(), "order.pdf", milk, 1))).convert("L")
    scale = picture.height / A4[1]
    field = picture.crop([round(scale * each) for each in (78, A4[1] - 730, 150, A4[1] - 706)])
    assert field.getextrema()[0] < 100, "the value is drawn"


def test_a_clause_that_pages_repeat_is_no_running_foot() -> None:
    clause = "This clause is for demonstration."
    pages = [["Sample", f"Part {part}", "1", clause, "2", clause, "3", clause] for part in "ABC"]
    assert inner_lines(pages) == [(1, 8)] * 3
    pages = [["Sample", f"Part {part}", "1", part, "2", part, "3", clause] for part in "ABC"]
    assert inner_lines(pages) == [(1, 6)] * 3


@given(st.lists(st.text("a1i-\u00ad \n#é", max_size=40), max_size=9))
@example(["a-\na", "-\n1", "a"])
def test_typesetting_takes_nothing_else(pages: list[str]) -> None:
    """Pages stay pages, and but for hyphens and white space, only whole lines at edges go."""
    lines = [page.split("\n") for page in pages]
    ranges = zip(lines, inner_lines(lines), strict=True)
    text = "\f".join("\n".join(own[first:last]) for own, (first, last) in ranges)
    joined = without_hyphens(text).text
    assert joined.count("\f") == text.count("\f")
    drop = str.maketrans("", "", "-\u00ad \n\f")
    assert joined.translate(drop) == text.translate(drop)
