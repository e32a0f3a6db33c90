"""Notebooks, subtitles and mails: what there is to read in them, and where it stands."""

from __future__ import annotations

import base64
import json
import mailbox
import quopri
from bisect import bisect_right
from collections.abc import Sequence
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core import SimpleDirectoryReader
from llama_index.core.ingestion import IngestionPipeline
from typer.testing import CliRunner

from rag_splitters import AutoChunker, Chunk, RecursiveChunker, SentenceChunker, langchain
from rag_splitters.cli import app
from rag_splitters.langchain import (
    AutoTextSplitter,
    FileLoader,
    PageTextSplitter,
    RecursiveTextSplitter,
    SentenceTextSplitter,
    parent_document_retriever,
)
from rag_splitters.llama_index import FileReader, SentenceNodeParser
from rag_splitters.reading.files import read_sources
from rag_splitters.structure.kinds import READ_KINDS, read_kind
from rag_splitters.structure.notebooks import read_notebook
from rag_splitters.text.origin import ReadingOptions, UnreadableError, write_origin
from tests.support.cases import CASES

DOCUMENTS = Path(__file__).parents[1] / "data" / "documents"
RAW = {name: (DOCUMENTS / name).read_text(encoding="utf-8") for name in (
    "trams.ipynb", "lecture.vtt", "dialogue.srt", "harbour_list.mbox"
)}  # fmt: skip


def notebook(*cells: dict[str, Any], **fields: Any) -> str:
    return json.dumps({"nbformat": 4, "cells": cells, "metadata": {}, **fields})


def code(source: Any, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "outputs": list(outputs), "source": source}


def text_of(raw: str, kind: str, **options: Any) -> str:
    (reading,) = read_kind(raw, kind, ReadingOptions(**options))
    return reading.text


# Positions


@pytest.mark.parametrize("name", RAW)
def test_chunks_know_where_they_stand_in_the_file(name: str) -> None:
    """Every word of a chunk stands in its part of the file, and nothing else is in that part."""
    raw = RAW[name]
    chunks = RecursiveTextSplitter(chunk_size=80).split_documents(
        FileLoader(DOCUMENTS / name).load()
    )
    for chunk in chunks:
        part = raw[chunk.metadata["file_start"] : chunk.metadata["file_end"]]
        words = [word for word in chunk.page_content.split() if word.isalnum()]
        assert [word for word in words if word not in part and f"<v {word}" not in raw] == []
    total = sum(c.metadata["file_end"] - c.metadata["file_start"] for c in chunks)
    assert total < 2 * len(raw)


@pytest.mark.parametrize("name", RAW)
def test_raw_text_is_cut_like_the_file(name: str) -> None:
    """A strategy that gets the raw text finds out what it is, also without a name."""
    loaded = AutoTextSplitter(chunk_size=300).split_documents(FileLoader(DOCUMENTS / name).load())
    raw = AutoChunker(chunk_size=300).chunk(RAW[name])
    by_place = sorted(loaded, key=lambda chunk: chunk.metadata["file_start"])
    assert [c.text for c in raw] == [c.page_content for c in by_place]
    for chunk, other in zip(raw, by_place, strict=True):
        assert (chunk.start, chunk.end) == (
            other.metadata["file_start"],
            other.metadata["file_end"],
        )
        shared = chunk.metadata.keys() - {"chunk_index"}
        assert shared >= {"strategy"}
        assert {key: chunk.metadata[key] for key in shared} == {
            key: other.metadata[key] for key in shared
        }


@pytest.mark.parametrize("name", CASES)
def test_every_strategy_knows_the_times(name: str, tmp_path: Path) -> None:
    core = CASES[name][0]
    path = tmp_path / "talk.srt"
    path.write_text(SRT)
    (source,) = read_sources(path)
    starts = [source.text.index(word) for word in "one two three four".split()]
    for chunk in core.chunk(source.text, metadata=source.metadata):
        first, last = (bisect_right(starts, place) for place in (chunk.start, chunk.end - 1))
        assert (chunk.metadata["start_time"], chunk.metadata["end_time"]) == (first, last + 0.5)


SRT = "".join(
    f"{n}\n00:00:0{n},000 --> 00:00:0{n},500\n{word} sheep were seen.\n\n"
    for n, word in enumerate("one two three four".split(), 1)
)


def test_places_of_another_text_are_ignored() -> None:
    metadata = write_origin("Hello.", {"time": [(0, 1.0, 2.0)]})
    (chunk,) = SentenceChunker().chunk("Hello, edited.", metadata=metadata)
    assert "start_time" not in chunk.metadata


@pytest.mark.parametrize(
    "value",
    ['{"length":', '{"length": 6, "time": 1}', '{"length": 6, "time": [[0, "a", 1]]}',
     '{"length": 6, "time": [[5, 1, 1], [0, 1, 1]]}', '{"length": 6, "file": []}',
     '{"length": 6, "file": [[1, 5, 10]]}', 7],
)  # fmt: skip
def test_places_that_are_damaged_are_ignored(value: Any) -> None:
    (chunk,) = SentenceChunker().chunk("Hello.", metadata={"origin": value})
    assert chunk.metadata.keys() == {"chunk_index"}


@pytest.mark.parametrize("retrieve", ["parents", "children", "passages"])
def test_results_of_parent_child_retrieval_know_their_times(retrieve: Any, tmp_path: Path) -> None:
    (tmp_path / "talk.srt").write_text(SRT)
    retriever = parent_document_retriever(
        FileLoader(tmp_path / "talk.srt").load(),
        parent_splitter=SentenceTextSplitter(chunk_size=45),
        child_splitter=SentenceTextSplitter(chunk_size=22),
        retrieve=retrieve,
    )
    (result,) = retriever.invoke("three sheep", k=1)
    times = (result.metadata["start_time"], result.metadata["end_time"])
    expected = {"parents": (3.0, 4.5), "children": (3.0, 3.5), "passages": (1.0, 4.5)}
    assert times == expected[retrieve]
    assert "origin" not in result.metadata


def test_pages_that_a_splitter_counts_itself_stay() -> None:
    """A document of one page, by its loader, may have several by a pattern."""
    document = Document(
        "Tea is hot.\n---\nMilk is cold.", metadata={"page_start": 1, "page_end": 1}
    )
    retriever = parent_document_retriever(
        [document], child_splitter=PageTextSplitter(page_break="---\n"), retrieve="children"
    )
    (result,) = retriever.invoke("cold milk", k=1)
    assert (result.metadata["page_start"], result.metadata["page_end"]) == (2, 2)


# Notebooks


def test_cells_are_markdown_and_code() -> None:
    raw = notebook(
        {"cell_type": "markdown", "source": "# Tea\n\nHot \u00e9 \ud83d\ude00."},
        code("", {"output_type": "stream", "text": "lost?\n"}),
        code(
            ["a = '```'\n", "```\n"],
            {"output_type": "stream", "text": ["\u001b[31mred\u001b[0m\n"]},
        ),
        {"cell_type": "raw", "source": "As it is."},
        code("%%bash\nls"),
        metadata={"language_info": {"name": "python"}},
    )
    assert text_of(raw, "notebook") == (
        "# Tea\n\nHot é 😀.\n\n```\nlost?\n```\n\n````python\na = '```'\n```\n````\n\n```\nred\n```"
        "\n\nAs it is.\n\n```bash\n%%bash\nls\n```"
    )


def test_outputs_are_kept_trimmed_or_dropped() -> None:
    data = {"text/plain": "<Table>", "text/html": "<b>x</b>", "image/png": "QUJD"}
    raw = notebook(
        code("x", {"output_type": "stream", "text": ["12345\n", "67890"]}),
        code("y", {"output_type": "display_data", "data": data}),
        code("z", {"output_type": "display_data", "data": {"text/html": "<b>bold</b> &amp; so"}}),
        code("e", {"output_type": "error", "ename": "OSError", "evalue": "no", "traceback": ["T"]}),
        code("p", {"output_type": "display_data", "data": {"image/png": "QUJD"}}),
        code("n", {"output_type": "stream", "text": []}),
    )
    whole = text_of(raw, "notebook")
    assert [part in whole for part in ("12345\n67890", "<Table>", "bold & so", "OSError: no")] == [
        True
    ] * 4
    assert "QUJD" not in whole
    assert "```\n12345\n6\n[4 more characters]\n```" in text_of(raw, "notebook", max_output=7)
    assert text_of(raw, "notebook", max_output=0) == "\n\n".join(f"```\n{c}\n```" for c in "xyzepn")


def test_notebooks_of_format_3_are_read() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Tea"]},
        {"cell_type": "code", "language": "python", "input": "x = 1",
         "outputs": [{"output_type": "pyout", "text": ["1"]}]},
    ]  # fmt: skip
    raw = json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]})
    assert text_of(raw, "notebook") == "## Tea\n\n```python\nx = 1\n```\n\n```\n1\n```"


def test_chunks_know_their_cells() -> None:
    raw = notebook(
        *({"cell_type": "markdown", "source": f"Cell {n} says so."} for n in range(1, 4))
    )
    chunks = AutoChunker(chunk_size=40).chunk(raw)
    cells = [(c.metadata["cell_start"], c.metadata["cell_end"]) for c in chunks]
    assert cells == [(1, 2), (3, 3)]
    assert raw[chunks[1].start : chunks[1].end] == chunks[1].text == "Cell 3 says so."


# Subtitles


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("\ufeff1\r\n00:00:01,000 --> 00:00:02,000 X1:0\r\nRain\r\nfell\r\n\r\n", "Rain fell"),
        ("1\n00:01.000 --> 00:02.000\n2\n00:03.000 --> 00:04.000\nRain.\n", "Rain."),
        ("1\n00:00:01,000 --> 00:00:02,000\n<i>It</i> {\\an8}rained\n2\n"
         "00:00:03,000 --> 00:00:04,000\n1999.\n", "It rained 1999."),
        ("WEBVTT\n\nNOTE not\nread\n\nSTYLE\n::cue {}\n\nREGION\nid:a\n\n"
         "name\n00:01.000 --> 00:02.000 line:0\n<v Ann>Tea &amp; milk\n\nNOTE no\n\n"
         "00:03.000 --> 00:04.000\n<v Ann>now\n\n"
         "00:05.000 --> 00:06.000\n<v.loud Bo>No.", "Ann: Tea & milk now\nBo: No."),
        ("00:00:01,000 --> 00:00:02,000\n- Tea?\n- No.\n\n00:00:03,000 --> 00:00:04,000\nPity.",
         "- Tea?\n- No.\nPity."),
        ("WEBVTT\n\n00:01.000 --> 00:02.000\n\n00:03.000 --> 00:04.000\nonly this", "only this"),
        ("WEBVTT\n\n00:01.000 --> 00:02.000\nso we\n\n00:02.000 --> 00:02.010\nso we\n\n"
         "00:02.010 --> 00:04.000\nso we\n<c>begin</c>", "so we begin"),
    ],
    ids=["bom", "no words", "tags", "vtt", "dialogue", "empty cue", "rolling"],
)  # fmt: skip
def test_words_of_subtitles(raw: str, text: str) -> None:
    lines = raw.replace("\r\n", "\n")
    for line_break in ("\n", "\r\n", "\r"):
        read = text_of(lines.replace("\n", line_break), "subtitles")
        assert read.replace(line_break, "\n") == text


def test_cues_out_of_order_have_their_own_times() -> None:
    raw = "01:02:09,000 --> 01:02:10,050\nLate.\n\n00:00:01,000 --> 00:00:02,500\nEarly."
    (chunk,) = AutoChunker().chunk(raw)
    assert chunk.text == "Late. Early."
    assert (chunk.metadata["start_time"], chunk.metadata["end_time"]) == (1.0, 3730.05)


def test_sentences_go_over_cues() -> None:
    chunks = AutoChunker(chunk_size=150).chunk(RAW["lecture.vtt"])
    assert any(
        "dug a hole, and some of you are still washing your boots." in c.text for c in chunks
    )
    assert all(c.metadata["start_time"] < c.metadata["end_time"] for c in chunks)


# Mail


def mail(**headers: str) -> EmailMessage:
    message = EmailMessage()
    for name, value in {"From": "Ann <ann@example.org>", "Subject": "Tea", **headers}.items():
        message[name] = value
    return message


def test_metadata_and_context_of_a_mail(tmp_path: Path) -> None:
    message = mail(Subject="Grüße", Date="Mon, 05 Feb 2024 09:12:40 +0100")
    message.set_content("Der Tee ist jetzt endlich fertig. Heiß ist er.\n")
    path = tmp_path / "a.eml"
    path.write_bytes(bytes(message))
    splitter = langchain.TitledTextSplitter(chunker=SentenceChunker(chunk_size=40))
    _, chunk = splitter.split_documents(FileLoader(path).load())
    assert chunk.page_content == "Grüße\n\nHeiß ist er."
    assert chunk.metadata["sender"] == "Ann <ann@example.org>"
    assert chunk.metadata["date"] == "2024-02-05T09:12:40+01:00"
    (document,) = FileReader().load_data(path)
    shown = document.get_metadata_str(mode="embed")  # type: ignore[arg-type]
    assert document.excluded_embed_metadata_keys == ["title", "origin"]
    assert "Grüße" in shown


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "iso-2022-jp", "shift_jis", "koi8-r"])
@pytest.mark.parametrize("encoding", ["7bit", "8bit", "quoted-printable", "base64"])
def test_encodings(charset: str, encoding: str) -> None:
    text = {"koi8-r": "Чай готов.", "iso-2022-jp": "お茶です。", "shift_jis": "表示、茶。"}.get(
        charset, "Café = 3 % déjà\nvu"
    )
    if encoding == "7bit" and charset != "iso-2022-jp":
        text = "Tea."
    message = mail()
    message.set_content(text, charset=charset, cte=encoding)
    data = bytes(message)
    raw, is_bytes = data.decode("latin-1"), not data.isascii()
    for form in [(raw, True), *([] if is_bytes else [(raw, False)])]:
        (reading,) = read_kind(form[0], "mail", is_bytes=form[1])
        assert reading.text == text
        low, high = reading.excerpt.bounds(0, len(text))
        assert data[low:high].strip()


def test_a_mailbox_of_several_encodings_is_read(tmp_path: Path) -> None:
    path = tmp_path / "list.mbox"
    box = mailbox.mbox(str(path))
    for charset in ("utf-8", "iso-8859-1"):
        message = mail(**{"Message-ID": f"<{charset}@x>"})
        message.set_content(
            f"Café in {charset}.\n\nFrom here it is quoted.\n", charset=charset, cte="8bit"
        )
        box.add(message)
    box.close()
    documents = FileLoader(path).load()
    assert [each.id for each in documents] == [
        f"{path.as_posix()}#{c}@x" for c in ("utf-8", "iso-8859-1")
    ]
    data = path.read_bytes()
    for document, charset in zip(documents, ("utf-8", "iso-8859-1"), strict=True):
        assert document.page_content == f"Café in {charset}.\n\nFrom here it is quoted."
        chunk = RecursiveTextSplitter(chunk_size=25).split_documents([document])[0]
        part = data[chunk.metadata["file_start"] : chunk.metadata["file_end"]]
        assert part.decode(charset).startswith(chunk.page_content)


def test_quotations_and_attachments_are_kept_or_dropped() -> None:
    inner = mail(Subject="Inside")
    inner.set_content("Forwarded words.")
    message = mail()
    message.set_content(
        "Yes.\n\nOn 5 Feb 2024, Bo <bo@example.org>\nwrote:\n> Ready?\n>\n> Bo\n\nAnn\n"
    )
    message.add_attachment("a,b\n1,2\n", subtype="csv", filename="list.csv")
    message.add_attachment(b"\x00\x01", maintype="image", subtype="png", filename="x.png")
    message.add_attachment(inner)
    raw = message.as_string()
    assert text_of(raw, "mail", quotations=False) == "Yes.\n\nAnn"
    assert "> Ready?" in text_of(raw, "mail")
    assert text_of(raw, "mail", quotations=False, attachments=True) == (
        "Yes.\n\nAnn\n\nAttachment: list.csv\n\na,b\n1,2\n\n"
        "Subject: Inside\nSender: Ann <ann@example.org>\n\nForwarded words."
    )
    (reading,) = read_kind(raw, "mail", ReadingOptions(attachments=True))
    for line, source in {"Attachment": "filename=", "Subject": "Subject: Inside"}.items():
        start = reading.text.index(f"\n{line}: ") + 1
        low, high = reading.excerpt.bounds(start, reading.text.index("\n", start))
        assert source in raw[low:high], "it is where the headers are"


def test_a_wrong_encoding_is_named_in_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.eml").write_bytes(b"From: a@b\r\nSubject: T\xe9\r\n\r\nCaf\xe9\r\n")
    (document,) = FileLoader(tmp_path / "a.eml").load()
    assert (document.page_content, document.metadata["subject"]) == ("Café", "Té")
    assert "a.eml has text that is not in us-ascii: read as cp1252" in caplog.text


@pytest.mark.parametrize("transfer", ["8bit", "base64", "quoted-printable"])
@pytest.mark.parametrize("text", ["Письмо о чае и о том, где пьют", "a"])
def test_damaged_letters_in_mails_leave_the_others_as_they_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, transfer: str
) -> None:
    data = text.encode() + b" caf\xe9 \x81"
    body = {"base64": base64.b64encode(data), "quoted-printable": quopri.encodestring(data)}
    head = "From: a@b\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: "
    mail = f"{head}{transfer}\n\n".encode() + body.get(transfer, data)
    (tmp_path / "a.eml").write_bytes(mail)
    (document,) = FileLoader(tmp_path / "a.eml").load()
    assert document.page_content == f"{text} café \x81"
    assert "read as cp1252" in caplog.text or "reading such bytes as cp1252" in caplog.text


@pytest.mark.parametrize(
    ("charset", "encoding", "text"),
    [("iso-8859-1", "cp1252", "“Té” – 5 €"), ("gb2312", "gb18030", "什麼這镕")],
)
@pytest.mark.parametrize("transfer", ["8bit", "base64", "quoted-printable"])
def test_declared_encodings_mean_what_they_mean_in_browsers(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    charset: str,
    encoding: str,
    text: str,
    transfer: str,
) -> None:
    data = text.encode(encoding)
    word = base64.b64encode(data)
    body = {"8bit": data, "base64": word, "quoted-printable": quopri.encodestring(data)}
    head = (
        f"From: a@b\r\nSubject: =?{charset}?b?{word.decode()}?=\r\n"
        f"Content-Type: text/plain; charset={charset}\r\n"
        f"Content-Transfer-Encoding: {transfer}\r\n\r\n"
    )
    (tmp_path / "a.eml").write_bytes(head.encode() + body[transfer])
    (document,) = FileLoader(tmp_path / "a.eml").load()
    assert (document.page_content, document.metadata["subject"]) == (text, text)
    assert "read as" not in caplog.text


def test_original_messages_are_quotations_and_forwarded_ones_are_not() -> None:
    original = "From: Bo\nSent: Monday\nTo: Ann\nSubject: Tea\n\nReady?\n"
    forwarded = "---- Forwarded message ----\nFrom: Bo\nDate: Monday\nSubject: Tea\n\nReady?"
    for text, kept in ((f"Yes.\n\n{original}", "Yes."), (forwarded, forwarded)):
        message = mail()
        message.set_content(text)
        assert text_of(message.as_string(), "mail", quotations=False) == kept


def test_html_is_read_if_there_is_no_plain_text() -> None:
    message = mail()
    message.set_content("<p>It is <b>ready</b>.</p><blockquote>When?</blockquote>", subtype="html")
    assert text_of(message.as_string(), "mail") == "It is ready.\n\nWhen?"
    assert text_of(message.as_string(), "mail", quotations=False) == "It is ready."
    message.add_alternative("<p>Other</p>", subtype="html")
    both = mail()
    both.set_content("Plain.")
    both.add_alternative("<p>HTML.</p>", subtype="html")
    assert text_of(both.as_string(), "mail") == "Plain."
    invitation = mail()
    invitation.set_content("<p>HTML.</p>", subtype="html")
    invitation.add_alternative("BEGIN:VCALENDAR", subtype="calendar")
    assert text_of(invitation.as_string(), "mail") == "HTML."


def test_lines_that_begin_with_from_end_no_message() -> None:
    raw = (
        "From a@b Mon Feb  5 09:12:44 2024\nFrom: a@b\nSubject: One\n\nHello\n\n"
        "From Ghent to Bruges in 2024\nit is not far.\n\n>From here too.\n\n"
        "From a@b Mon Feb  5 09:12:44 2024\nFrom: a@b\nSubject: Two\n\nBye\n"
    )
    texts = [reading.text for reading in read_kind(raw, "mail")]
    assert texts == [
        "Hello\n\nFrom Ghent to Bruges in 2024\nit is not far.\n\nFrom here too.",
        "Bye",
    ]
    assert [c.metadata["subject"] for c in AutoChunker().chunk(raw)] == ["One", "Two"]


HEADERS = "From: a@b\nSubject: Tea\nMIME-Version: 1.0\n"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (HEADERS + "Content-Type: multipart/mixed; boundary=x\n\npre\n--x\n\nIn time", "In time"),
        (HEADERS + "Content-Type: multipart/mixed\n\nNo boundary.", "No boundary."),
        (HEADERS + "Content-Type: text/plain; charset=klingon\n\nQapla'", "Qapla'"),
        (HEADERS + "Content-Transfer-Encoding: base64\n\nSGVsbG8gdGhlcmU", "Hello there"),
        (HEADERS + "Content-Type: image/png\n\nabc", ""),
        (HEADERS + "Content-Type: text/plain; charset=latin-1\n\nCafé", "Café"),
        (HEADERS + "Content-Type: text/plain; name=tea.txt\n\nIt is hot.", "It is hot."),
        (HEADERS, ""),
        (f"{HEADERS}Content-Transfer-Encoding: quoted-printable\n\nIn =\ntime\nfor\n"
         .replace("\n", "\r"), "In time\rfor"),
    ],
    ids=["unclosed", "no boundary", "charset", "cut base64", "image", "8bit", "name", "no body",
         "CR"],
)  # fmt: skip
def test_damaged_mails(raw: str, text: str) -> None:
    assert text_of(raw, "mail") == text


def test_a_speaker_stands_where_the_tag_does() -> None:
    raw = "00:01.000 --> 00:02.000\n<v Ada>Tea. <v Bo>No."
    chunks = AutoChunker(chunk_size=4).chunk(raw)
    places = [(c.text, raw[c.start : c.end]) for c in chunks]
    assert places == [("Ada:", "<v Ada>"), ("Tea.", "Tea."), ("Bo:", "<v Bo>"), ("No.", "No.")]


# Whatever comes


MARKS: dict[str, Sequence[str]] = {
    "notebook": ['{"cells":[', '{"cell_type":"code","source":', '"x\\n\\u00e9"', "[", "]", "}",
                 ",", '"outputs":[{"text":'],
    "subtitles": ["00:00:01,000 --> 00:00:02,000\n", "WEBVTT\n", "\n", "NOTE", "<v A>", "-"],
    "mail": ["From a@b Mon 2024\n", "Subject: =?utf-8?q?=C3=A9?=\n", "\n", "--x\n", "--x--\n",
             "> a\n", "Content-Type: multipart/mixed; boundary=x\n",
             "Content-Type: message/rfc822\n", "=C3=\n", "é\ud800", "\x00",
             "Content-Type: text/html; charset=shift_jis\n",
             "Content-Transfer-Encoding: base64\n",
             "Content-Transfer-Encoding: quoted-printable\n"],
}  # fmt: skip


@st.composite
def raw_texts(draw: st.DrawFn) -> tuple[str, str]:
    """A kind, and a text with its marks."""
    kind = draw(st.sampled_from(READ_KINDS))
    parts = st.one_of(st.sampled_from(MARKS[kind]), st.text(max_size=5))
    return kind, "".join(draw(st.lists(parts, max_size=25)))


@example(("subtitles", "00:00:01,000 --> 00:00:02,000\n0\u0300\u0300\u0300"))
@example(("mail", "Content-Type: text/html; name=\ud800\nSubject: \ud800\n\nTea"))
@example(("mail", "Content-Type: message/rfc822\n\nSubject: Tea\n"))
@given(raw_texts())
def test_any_text_is_read_or_refused(kind_and_text: tuple[str, str]) -> None:
    kind, raw = kind_and_text
    try:
        readings = read_kind(raw, kind)
    except UnreadableError:
        return
    for reading in readings:
        for start in range(len(reading.text)):
            low, high = reading.excerpt.bounds(start, start + 1)
            assert 0 <= low <= high <= len(raw)
            whole = reading.excerpt.bounds(0, len(reading.text))
            assert whole[0] <= low <= high <= whole[1]
    metadata = {"file_name": {"notebook": "a.ipynb", "subtitles": "a.srt", "mail": "a.eml"}[kind]}
    for size in (30, 3):
        chunks: list[Chunk] = AutoChunker(chunk_size=size).chunk(raw, metadata=metadata)
        assert [c.start for c in chunks] == sorted(c.start for c in chunks)
        assert all(c.start < c.end <= len(raw) for c in chunks)
        too_long = [c.text for c in chunks if len(c.text) > size]
        assert all(regex.fullmatch(r"\X", text, regex.DOTALL) for text in too_long)


# Files


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.ipynb", "{", "a notebook: invalid JSON: it ends too early"),
        ("a.ipynb", '{"cells": [}', "a notebook: invalid JSON in line 1"),
        ("a.ipynb", "[1]", "a notebook: it has no cells"),
        ("a.srt", "Only words.", "subtitles: it has no cue such as"),
        ("a.vtt", "WEBVTT\n\nNOTE nothing", "subtitles: it has no cue such as"),
        ("a.eml", "Dear Ann,\n\nhello", "mail: line 1 is not a header such as"),
    ],
)  # fmt: skip
def test_files_of_another_kind_are_an_error(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ValueError, match=f"{name} cannot be read as {message}"):
        FileLoader(path).load()
    assert AutoChunker().chunk(content, metadata={"source": name})[0].text in content


@pytest.mark.parametrize("suffix", ["ipynb", "srt", "vtt", "eml", "mbox"])
def test_empty_files_are_empty_documents(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(b"\xef\xbb\xbf \n")
    (document,) = FileLoader(path).load()
    assert (document.page_content, document.id) == ("", path.as_posix())


def test_loader_and_splitter_in_a_chain(tmp_path: Path) -> None:
    raw = notebook(code("x", {"output_type": "stream", "text": "12345"}))
    (tmp_path / "a.ipynb").write_text(raw)
    chain = RunnableLambda(lambda path: FileLoader(path, max_output=2).load()) | RunnableLambda(
        AutoTextSplitter(chunk_size=200).split_documents
    )
    (chunk,) = chain.invoke(tmp_path / "a.ipynb")
    assert isinstance(chunk, Document)
    assert chunk.page_content == "```\nx\n```\n\n```\n12\n[3 more characters]\n```"
    assert (chunk.metadata["strategy"], chunk.metadata["cell_end"]) == ("content_aware", 1)
    with pytest.raises(ValueError, match="max_output must be a whole number of at least 0, got -1"):
        FileLoader("a.ipynb", max_output=-1)
    assert FileLoader("a.ipynb", max_output=np.int64(2)).options.max_output == 2


def test_reader_in_a_directory_reader_and_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "talk.srt").write_text(SRT)
    (tmp_path / "list.mbox").write_text(RAW["harbour_list.mbox"])
    reader = FileReader(quotations=False)
    documents = SimpleDirectoryReader(
        str(tmp_path), file_extractor={".srt": reader, ".mbox": reader}
    ).load_data()
    assert len(documents) == 5
    nodes = IngestionPipeline(transformations=[SentenceNodeParser(chunk_size=150)]).run(
        documents=documents
    )
    times = [node.metadata for node in nodes if "start_time" in node.metadata]
    assert times
    assert all("start_time" in n.excluded_embed_metadata_keys for n in nodes if n.metadata in times)
    senders = {node.metadata["sender"] for node in nodes if "sender" in node.metadata}
    assert len(senders) == 3
    assert not any("origin" in node.metadata for node in nodes)
    assert not any(node.get_content().startswith(">") for node in nodes)


def test_command_line_splits_and_indexes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    box = Path("docs/list.mbox")
    first, second = (
        f"From a@b Mon Feb  5 09:12:44 2024\nSubject: {word}\nFrom: a@b\nMessage-ID: <{word}>\n\n"
        f"All about {word}.\n\n"
        for word in ("tea", "milk")
    )
    box.write_text(first + second)
    Path("docs/talk.srt").write_text(SRT)
    runner = CliRunner()
    rows = runner.invoke(app, ["split", "docs", "--json"])
    lines = [json.loads(line) for line in rows.stdout.splitlines()]
    assert [line["metadata"].get("subject") for line in lines] == ["tea", "milk", None]
    assert lines[2]["metadata"]["end_time"] == 4.5
    for counts in ("2 new, 0 changed, 0", "0 new, 0 changed, 2"):
        result = runner.invoke(app, ["index", "made", "docs"])
        assert counts in result.stdout, result.output
    box.write_text(second)
    runner.invoke(app, ["index", "made", "docs"])
    found = runner.invoke(app, ["query", "made", "tea milk", "--json"])
    rows_found = [json.loads(line) for line in found.stdout.splitlines()]
    assert sum("All about" in row["text"] for row in rows_found) == 1


def test_recursive_chunker_leaves_raw_text_as_it_is() -> None:
    raw = RAW["dialogue.srt"]
    assert all(raw[c.start : c.end] == c.text for c in RecursiveChunker(chunk_size=200).chunk(raw))


@pytest.mark.parametrize(
    ("level", "marks"), [(1, 1), (6, 6), (12, 6), (456, 6), (0, 1), (-1, 1), (1.5, 1), ("", 1)]
)
def test_headings_of_notebooks_have_levels_that_markdown_has(level: object, marks: int) -> None:
    cell = {"cell_type": "heading", "level": level, "source": ["Tea"]}
    text = json.dumps({"nbformat": 3, "worksheets": [{"cells": [cell]}]})
    assert read_notebook(text).text == "#" * marks + " Tea"
