"""HTML as plain text: what is kept, what is dropped, where it stands, and in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Comment
from hypothesis import given
from hypothesis import strategies as st

from rag_splitters import (
    Chunker,
    ContentAwareChunker,
    HierarchicalChunker,
    HybridChunker,
    ModalityChunker,
    RecursiveChunker,
    SentenceChunker,
    Span,
    TitledChunker,
)
from rag_splitters.structure.html.content import read_page
from rag_splitters.structure.html.text import Stripped, plain_page
from rag_splitters.structure.html.tree import parse_html
from rag_splitters.structure.outline import Outline
from tests.structure.test_blocks import HTML_PIECES, texts_of
from tests.support.checks import check_chunker
from tests.support.counting import count_calls
from tests.support.splitting import split_texts

FOLDER = Path(__file__).parents[1] / "data" / "documents"
PAGES = ("agua_es.html", "docutils_tool.html", "router_help.html")
AROUND = (
    *("nav", "header", "footer", "button", "script", "style", "svg", ".headerlink", "title"),
    *("[role=navigation]", "[role=contentinfo]", ".cookie-banner", "aside.sidebar"),
)
"""What is around the content of `PAGES`, as CSS selectors."""


def page(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def words(text: str) -> list[str]:
    """The words of a text without marks of lists and tables."""
    return re.findall(r"\w+", re.sub(r"^ *\d+\. ", "", text, flags=re.MULTILINE))


def words_inside(text: str, span: Span) -> set[str]:
    """The words in the HTML that a span bounds."""
    evidence = BeautifulSoup(f"<b>{text[span.start : span.end]}</b>", "html.parser")
    return {*words(evidence.get_text()), *words(evidence.get_text(" "))}


def words_by_parser(text: str) -> list[str]:
    """The words of a page's main content, as another parser finds them."""
    soup = BeautifulSoup(text, "html.parser")
    for element in soup.select(", ".join(AROUND)):
        element.decompose()
    content = soup.find(["main"]) or soup.find(role="main") or soup
    for comment in content.find_all(string=lambda each: isinstance(each, Comment)):
        comment.extract()
    for element in content.find_all(["p", "li", "td", "th", "h1", "h2", "h3", "dt", "dd", "pre"]):
        element.append("\n")
    return words(content.get_text())


@pytest.mark.parametrize("name", PAGES)
def test_chunks_hold_the_words_of_the_main_content(name: str) -> None:
    text = page(name)
    for chunker in (
        ContentAwareChunker(chunk_size=1500),
        HierarchicalChunker(chunk_size=300),
        ModalityChunker(text=RecursiveChunker(chunk_size=300)),
        TitledChunker(),
    ):
        chunks = [chunk.text for chunk in chunker.chunk(text)]
        found = words("\n".join(chunks))
        if isinstance(chunker, TitledChunker):
            title = words(Outline.of(text).title)
            repeated = len(title) * (len(chunks) - 1)
            assert len(found) == len(words_by_parser(text)) + repeated
        elif not isinstance(chunker, ModalityChunker):
            assert found == words_by_parser(text)
        else:
            assert not set(words_by_parser(text)) - set(found)
        assert not any("¶" in chunk or "<p" in chunk or "cookie" in chunk for chunk in chunks)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("main_content_only", [True, False])
def test_pages_keep_the_guarantees(name: str, main_content_only: bool) -> None:
    text = page(name)
    tags = read_page(text, main_content_only).tags
    blocks = plain_page(text, main_content_only)
    assert blocks.text
    dropped = [(tag.start, tag.end) for tag in tags]
    dropped += [match.span() for match in re.finditer(r"<head>.*?</head>", text, re.DOTALL)]
    for size in (60, 300):
        options = {"main_content_only": main_content_only}
        check_chunker(ContentAwareChunker(chunk_size=size, **options), text, dropped)
        check_chunker(HierarchicalChunker(chunk_size=size, **options), text, dropped)


@pytest.mark.parametrize("name", PAGES)
def test_a_word_stands_in_the_html_of_its_chunk(name: str) -> None:
    text = page(name)
    for span in ContentAwareChunker(chunk_size=120).spans(text):
        own = span.text_of(text).rpartition("--- |")[2]  # under a repeated header
        assert not set(words(own)) - words_inside(text, span)


DROPPED = {
    "nav": "<nav>{}</nav>",
    "role": "<div role='navigation'><div>{}</div></div>",
    "header": "<header>{}</header>",
    "banner": "<div role=banner>{}</div>",
    "footer": "<footer>{}</footer>",
    "class footer": "<div class='page footer'>{}</div>",
    "aside": "<aside>{}</aside>",
    "cookies": "<section id='CookieConsentBanner' class='cookie-consent'>{}</section>",
    "search": "<form role='search'>{}</form>",
    "pilcrow": "<h2>Tea<a class='headerlink' href='#tea'>{}</a></h2>",
    "section mark": "<h2>Tea<a href='#tea'>&sect;</a></h2>",
    "button": "<p>Tea<button type='button'>{}</button></p>",
    "line numbers": "<table><tr><td class='linenos'><pre>{}</pre></td><td><pre>a</pre></table>",
    "template": "<template><p>{}</p></template>",
    "drawing": "<p>Tea <svg><title>{}</title></svg></p>",
    "script": "<script>{}</script>",
    "style": "<STYLE>{}</STYLE >",
    "comment": "<p>Tea <!-- {} --></p>",
    "head": "<head><title>{}</title></head>",
    "outside of main": "<div><p>{}</p></div><main><p>Tea.</p></main><p>{}</p>",
    "title outside of main": "<h1>{}</h1><main><h1>Tea</h1></main>",
    "unclosed inside": "<nav><ul><li>{}</nav>",
    "closed by its parent": "<div><nav><b>{}</div>",
}


@pytest.mark.parametrize("markup", DROPPED.values(), ids=DROPPED)
def test_what_is_around_the_main_content_is_dropped(markup: str) -> None:
    text = markup.replace("{}", "Noise") + "<article><p>Leaves.</p></article>"
    text = text if "<main>" not in markup else markup.replace("{}", "Noise")
    chunks = " ".join(chunk.text for chunk in ContentAwareChunker(format="html").chunk(text))
    assert "Noise" not in chunks
    assert "§" not in chunks
    assert "Leaves." in chunks or "Tea" in chunks


KEPT = {
    "header of an article": "<article><header>{}</header></article>",
    "footer of a section": "<section><footer>{}</footer></section>",
    "aside in main": "<main><p>Tea.</p><aside>{}</aside></main>",
    "header with the only h1": "<header><h1>Tea</h1>{}</header>",
    "title before main": "<h1>{}</h1><main><p>Tea.</p></main>",
    "menu around the main content": "<div role=navigation><main>{}</main></div>",
    "menu around an article": "<nav><article><p>{}</p></article></nav><p>Tea.</p>",
    "unclosed menu": "<nav><p>{}",
    "link with words": "<p><a href='#tea'>{}</a></p>",
    "article about cookies": "<article class='cookie-notice-story'><p>{}</p></article>",
    "form": "<form><form><p>{}</form>",
    "text in noscript": "<noscript>{}</noscript>",
    "unclosed script": "<p>{}<script>let",
    "nothing else": "<nav>{}</nav>",
    "main without text": "<main></main><p>{}</p>",
    "table for layout": "<table role=presentation><tr><td>{}<td>x</table>",
    "text between rows": "<table><tr><td>a<td>b</tr>{}<tr><td>c<td>d</table>",
}


def test_only_cells_have_escaped_bars() -> None:
    html = "<table><tr><th>a<tr><td>x|y</td></tr>not | a cell</table><p>After | all"
    text = ContentAwareChunker(format="html").chunk(html)[0].text
    assert text == "| a |\n| --- |\n| x\\|y |\nnot | a cell\n\nAfter | all"


@pytest.mark.parametrize(("length", "times"), [(100, 2), (101, 1)])
def test_only_short_cells_are_repeated_in_each_of_their_rows(length: int, times: int) -> None:
    rows = f"<tr><td rowspan=2>{'w' * length}<td>1<tr><td>2"
    text = ContentAwareChunker(format="html").chunk(f"<table><tr><th>a<th>b{rows}</table>")[0].text
    assert text.count("w" * length) == times


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("<h2><button>Ingredients</button></h2>", "Ingredients"),
        ("<h2><span><button><b>In</b>gredients</button></span> </h2>", "Ingredients"),
        ("<h2>Steps<button>Copy link</button></h2>", "Steps"),
        ("<h2><div>For</div><div>two</div></h2>", "For two"),
        ("<h2><p>Steps</p></h2>", "Steps"),
        ("<h2>One<br>two</h2>", "One two"),
        ("<h2>Steps <!-- 1 --><a class=headerlink href=#s>¶</a></h2>", "Steps"),
    ],
)
def test_the_text_of_a_heading_is_all_of_its_text(heading: str, title: str) -> None:
    text = f"<main><h1>Cake</h1>{heading}<ul><li>Flour</ul></main>"
    assert Outline.of(text).above(text.index("Flour")) == ("Cake", title)
    chunk = ContentAwareChunker(format="html").chunk(text)[0]
    assert chunk.text.split() == ["Cake", *title.split(), "-", "Flour"]


def test_formulas_stand_there_once_and_nothing_says_edit() -> None:
    tex = "x^{2}"
    math = f"<math><semantics><mi>x</mi><annotation>{tex}</annotation></semantics></math>"
    wiki = f"<span class=mwe-math-mathml-a11y>{math}</span><img class=mwe alt='{tex}'>"
    katex = f"<span class=katex-mathml>{math}</span><span class=katex-html>x 2</span>"
    edit = "<span class=mw-editsection>[<a href=/e>edit</a>]</span>"
    text = f"<main><h2>Area{edit}</h2><p>It is {wiki} here.</p><p>And {katex} there.</p></main>"
    chunk = ContentAwareChunker(format="html").chunk(text)[0]
    assert chunk.text == f"Area\n\nIt is {tex} here.\n\nAnd x there."
    assert chunk.metadata["headings"] == ["Area"]


@pytest.mark.parametrize(
    "menu",
    [
        '<div class="vector-dropdown mw-portlet-lang">154 languages<ul><li><a>af</a></ul></div>',
        '<div class="mw-portlet">Tools</div>',
        '<div id=catlinks class="catlinks">Categories: <a>Tea</a></div>',
    ],
)
def test_menus_of_wikis_are_no_text(menu: str) -> None:
    (chunk,) = ContentAwareChunker().chunk(f"<main><h1>Tea</h1>{menu}<p>It is hot.</p></main>")
    assert chunk.text == "Tea\n\nIt is hot."


@pytest.mark.parametrize("main_content_only", [True, False])
def test_hidden_facts_of_a_report_are_no_text(main_content_only: bool) -> None:
    facts = (
        "<ix:header><ix:hidden><ix:nonNumeric>0000013156</ix:nonNumeric></ix:hidden></ix:header>"
    )
    text = "<p>Sold <ix:nonFraction>7</ix:nonFraction> cups.</p>"
    page = f"<html><body><div style=display:none>{facts}</div>{text}</body></html>"
    (chunk,) = ContentAwareChunker(main_content_only=main_content_only).chunk(page)
    assert chunk.text == "Sold 7 cups."


def test_a_block_ends_only_a_paragraph_of_its_own_scope() -> None:
    text = "<p>a<object><p>b<div>c</div></object>d</p>"
    outer, inner = parse_html(text).named("p")
    assert text[outer.start : outer.end] == text
    assert text[inner.start : inner.end] == "<p>b"


def test_a_heading_around_other_blocks_is_not_one_block() -> None:
    text = "<h1>Tea<ul><li>green<li>black</ul></h1>"
    assert ContentAwareChunker(format="html").chunk(text)[0].text == "Tea\n\n- green\n- black"


@pytest.mark.parametrize("markup", KEPT.values(), ids=KEPT)
def test_content_is_kept(markup: str) -> None:
    chunks = ContentAwareChunker(format="html").chunk(markup.replace("{}", "Leaves"))
    assert "Leaves" in " ".join(chunk.text for chunk in chunks)


def test_an_option_keeps_all_of_a_page() -> None:
    text = "<nav>Home</nav><main><p>Tea &amp; milk</p></main>"
    shown: Callable[..., str] = lambda **options: " ".join(  # noqa: E731
        chunk.text for chunk in ContentAwareChunker(format="html", **options).chunk(text)
    )
    assert shown() == "Tea & milk"
    assert shown(main_content_only=False) == "Home\n\nTea & milk"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("<p>a&nbsp;b &lt;c&gt; &copy;&#8364;&#x41;&unknown; &amp", "a\u00a0b <c> ©€A&unknown; &"),
        ("<p>one<br>two<br/>three</p>", "one\ntwo\nthree"),
        ("<p>a  b\n\tc <b> d </b>e</p>", "a b c d e"),
        ("<pre>\n  a\n\n    b &lt; c\n</pre>", "a\n\n    b < c"),
        ("<p>1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<p>See <img src=a.png alt='the  cup'> here", "See the cup here"),
        (f"<p>See <img src=\"data:a/b;base64,{'A' * 600}=\" alt='a > b'>", "See a > b"),
        ("<ul><li>a<ol start=3><li>b<li>c</ol><li>d</ul>", "- a\n  3. b\n  4. c\n- d"),
        ("<dl><dt>a<dd>b<dt>c<dd>d<ul><li>e</ul></dl>", "a\nb\n\nc\nd\n\n- e"),
        ("<table><tr><th>a<th>b<tr><td>1|2<td>", "a\n\nb\n\n1|2"),  # it is never closed
        ("<table><tr><th>a<th>b<tr><td>1|2<td></table>", "| a | b |\n| --- | --- |\n| 1\\|2 | |"),
        ("<table><tr><td>a<td>b</table>", "| a | b |"),
        ("<table><tr><td><table><tr><td>a<td>b<tr><td>c<td>d</table>", "| a | b |\n| c | d |"),
        ("<table><tr><td>a<tr><td><h2>b</h2></table>", "a\n\nb"),
    ],
)
def test_plain_text(text: str, plain: str) -> None:
    assert plain_page(text).text.strip() == plain


def test_headings_have_no_marks_and_menus_have_no_headings() -> None:
    outline = Outline.of(page("docutils_tool.html"))
    assert [heading.title for heading in outline.headings] == [
        "Inside A Docutils Command-Line Front-End Tool"
    ]
    titles = [heading.title for heading in Outline.of(page("router_help.html")).headings]
    assert titles[:2] == ["Setting up your Brook 4 router", "Before you begin"]
    assert "In this section" not in titles


def test_term_stays_with_its_description() -> None:
    entries = "".join(f"<dt>function_{n}(a, b)<dd>It is number {n}. It ends." for n in range(9))
    for chunk in ContentAwareChunker(chunk_size=90, format="html").chunk(f"<dl>{entries}</dl>"):
        assert chunk.text.startswith("function_")
        assert chunk.text.endswith("It ends.")


@pytest.mark.parametrize(
    "chunker",
    [
        HybridChunker(stages=[ContentAwareChunker(chunk_size=400), SentenceChunker(chunk_size=90)]),
        HybridChunker(stages=[ModalityChunker(), SentenceChunker(chunk_size=90)]),
        TitledChunker(chunker=ContentAwareChunker(chunk_size=200), include_headings=True),
        TitledChunker(chunker=HierarchicalChunker(chunk_size=200)),
    ],
)
def test_rewritten_chunks_pass_through_other_strategies(chunker: Chunker) -> None:
    text = page("router_help.html")
    spans = split_texts(chunker, [text])[0]
    assert sum(span.is_rewritten for span in spans) > 10
    for span in spans:
        assert chunker.fits(span.text_of(text))
        own = span.text_of(text).split("\n\n")[-1]  # behind the title
        own = own.rpartition("--- |")[2]  # under a repeated header
        assert not set(words(own)) - words_inside(text, span)


def test_language_of_the_user_keeps_tags() -> None:
    text = page("agua_es.html")
    chunks = RecursiveChunker(chunk_size=200, language="html").chunk(text)
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    assert any("<p>" in chunk.text for chunk in chunks)


@given(text=texts_of(HTML_PIECES), main_content_only=st.booleans())
def test_tags_and_what_is_dropped_ascend(text: str, main_content_only: bool) -> None:
    position = 0
    for tag in read_page(text, main_content_only).tags:
        assert position <= tag.start <= tag.end <= len(text)
        position = tag.end


PATHOLOGICAL = (
    *("<nav>", "<div role=navigation>", "<h1><div>x", "<figure>x", "<h2><button>x</button>"),
    *("</nav>", "<main>", "<main></main>", "<a href='#'>", "<h1>"),
    *("<div class=headerlink>", "<svg>", "<table><tr><td>", "<ul><li>", "<ol><li>x", "<dl><dt>x"),
    *("<tr><td rowspan=0>x", "<header><h1>", "<a href='#x'>#</a>", "<button></nav>", "<template>"),
    *("<nav>x</nav>", "<main>x</main>y", "<p>x&amp;", "<dt>x<dd>", "<aside></main>", "<td>x|"),
)


@pytest.mark.slow
@pytest.mark.parametrize("piece", PATHOLOGICAL)
def test_work_grows_linearly(piece: str) -> None:
    """Counts the calls: four times the text, no more than six times the work and the output."""
    for before, after in (("", ""), ("<table><tr>", "</table>"), ("<main>x", "</main>")):
        short, long = (work_of(before + piece * (50 * times) + after) for times in (1, 4))
        assert long < 6 * short + 1250, (short, long)


def work_of(text: str) -> int:
    """How many function calls it takes to read a text, and how long its plain text is."""
    pages: list[Stripped] = []
    return count_calls(lambda: pages.append(plain_page(text))) + len(pages[0].text)
