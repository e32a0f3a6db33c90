"""XML as plain text: sections, records and tables, where they stand, and in linear time."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_splitters import AutoChunker, ContentAwareChunker, HierarchicalChunker
from rag_splitters.structure.blocks import read_blocks
from rag_splitters.structure.outline import Outline
from rag_splitters.structure.xml import xml_page
from tests.support.counting import count_calls

RSS = """<?xml version="1.0"?>
<rss version="2.0"><channel><title>Tea news</title>
<item><title>Sencha &amp; co</title><link>https://example.org/1</link>
<description>&lt;p&gt;It is &lt;b&gt;green&lt;/b&gt;.&lt;/p&gt;</description></item>
<item><title>Assam</title><description><![CDATA[<p>It is <i>black</i>.</p>]]></description></item>
</channel></rss>"""
DOCBOOK = """<!DOCTYPE book [<!ENTITY secret SYSTEM "file:///etc/hostname">]>
<book><info><title>Tea</title></info><chapter><title>Green</title>
<para>Cool <emphasis>the water</emphasis>. &secret;</para>
<itemizedlist><listitem><para>pot</para></listitem><listitem><para>cup</para></listitem>
</itemizedlist><section><title>Code</title><programlisting>if hot:
    wait()</programlisting>
<table><tgroup><row><entry>tea</entry><entry>price</entry></row>
<row><entry>a|b</entry><entry>4</entry></row></tgroup></table></section></chapter></book>"""
POM = """<project xmlns="http://example.org/pom"><version>1</version><dependencies>
<dependency><group>a</group><artifact>b</artifact></dependency>
<dependency scope="test"><group>c</group></dependency></dependencies></project>"""


def test_items_of_a_feed_are_sections() -> None:
    chunks = ContentAwareChunker(chunk_size=70).chunk(RSS)
    assert [(chunk.text, chunk.metadata["headings"]) for chunk in chunks] == [
        (
            "Tea news\n\nSencha & co\n\nlink: https://example.org/1\n\nIt is green.",
            ["Tea news", "Sencha & co"],
        ),
        ("Assam\n\nIt is black.", ["Tea news", "Assam"]),
    ]
    assert RSS[chunks[1].start : chunks[1].end].startswith("<item><title>Assam")


def test_sections_lists_code_and_tables_of_docbook() -> None:
    page = xml_page(DOCBOOK)
    assert page.text == (
        "Tea\n\nGreen\n\nCool the water. &secret;\n\n- pot\n- cup\n\n"
        "Code\n\nif hot:\n    wait()\n\n"
        "| tea | price |\n| --- | --- |\n| a\\|b | 4 |"
    )
    headings = [(each.level, each.title) for each in Outline.of(DOCBOOK).headings]
    assert headings == [(1, "Tea"), (2, "Green"), (3, "Code")]
    assert "&secret;" in page.text  # nothing was opened


def test_data_becomes_records_under_their_path() -> None:
    assert [each.level for each in Outline.of(POM).headings] == [1, 2]
    chunks = AutoChunker(chunk_size=60, chunk_overlap=0).chunk(POM)
    assert [(chunk.text, chunk.metadata["headings"]) for chunk in chunks] == [
        ("project\n\nversion: 1", ["project"]),
        ("dependencies\n\ndependency\ngroup: a\nartifact: b", ["project", "dependencies"]),
        ('dependency scope="test"\ngroup: c', ["project", "dependencies"]),
    ]


def test_escaped_html_is_markup_in_a_feed_and_text_elsewhere() -> None:
    item = "<r><description>&lt;p&gt;Tom&amp;#8217;s&lt;br/&gt;tea&lt;/p&gt;</description></r>"
    assert xml_page(item).text == "r\n\nTom’s\ntea"
    prose = "<a><title>T</title><para>Use the &lt;table&gt; element.</para></a>"
    assert xml_page(prose).text == "T\n\nUse the <table> element."


def test_items_are_numbered_and_indented_as_in_html() -> None:
    inner = "<itemizedlist><listitem><para>b</para></listitem></itemizedlist>"
    items = f"<listitem><para>a</para>{inner}</listitem><listitem><para>c</para></listitem>"
    page = xml_page(f"<d><title>T</title><orderedlist>{items}</orderedlist></d>")
    assert page.text == "T\n\n1. a\n  - b\n2. c"


PIECES = (
    *("<r>", "</r>", "<title>", "</title>", "<p>", "</p>", "<v a='1'>", "</v>", "<e/>", "x. ", "y"),
    *("<li>", "</li>", "<row>", "</row>", "<table>", "</table>", "<![CDATA[", "]]>", "&lt;b&gt;"),
    *("<!--", "-->", "<?x", "?>", "&amp;", "|", "\n", "<", ">", "<!DOCTYPE r [", "]>", "<info>"),
    *("<code>", "  z", "</code>", "e\u0301", "\r\n", "\0"),
    *("<description>", "</description>", "&lt;/b&gt;", "&amp;#8217;", "<k b='c'/>"),
)


@example(
    text="<r><description><![CDATA[&lt;p&gt;\n</ol>&amp;-->&lt;/p&gt;]]></description></r>", size=8
)
@given(text=st.lists(st.sampled_from(PIECES), max_size=40).map("".join), size=st.integers(8, 60))
def test_broken_xml_has_positions_and_sizes(text: str, size: int) -> None:
    for chunker in (
        ContentAwareChunker(format="xml", chunk_size=size, chunk_overlap=0),
        HierarchicalChunker(format="xml", chunk_size=size, chunk_overlap=0),
    ):
        for span in chunker.spans(text):
            assert 0 <= span.start < span.end <= len(text)
            assert chunker.fits(span.text_of(text)) or len(span.text_of(text)) < 4
    page, position = xml_page(text), 0
    for offset, start, end in zip(
        page.excerpt.offsets, page.excerpt.starts, page.excerpt.ends, strict=True
    ):
        assert offset >= 0
        assert 0 <= start <= end <= len(text)
    for block in read_blocks(text, "xml"):
        assert position <= block.start < block.end <= len(text)
        position = block.end


@pytest.mark.slow
def test_work_grows_linearly() -> None:
    for piece in (*PIECES, "<s><title>t</title>", "<x><v>1</v></x>", "<!DOCTYPE ["):
        few, many = (count_calls(partial(xml_page, "<r>" + n * piece)) for n in (100, 400))
        assert many < 6 * few + 1700, (piece, few, many)
