"""Kinds of texts: one detector, by name, type, first line and content."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rag_splitters import CodeChunker, ContentAwareChunker, ModalityChunker, TableChunker
from rag_splitters.structure.kinds import KINDS, detect_kind, language_of
from tests.support.counting import count_calls

DOCUMENTS = Path(__file__).parents[1] / "data" / "documents"
ABOUT = ("README.md", "LICENSES.txt", "gold.json")
NAMES = sorted(path.name for path in DOCUMENTS.iterdir() if path.name not in ABOUT)
KIND_OF_SUFFIX = {
    ".1": "man",
    ".adoc": "asciidoc",
    ".csv": "csv",
    ".go": "go",
    ".html": "html",
    ".ipynb": "notebook",
    ".log": "log",
    ".mbox": "mail",
    ".md": "markdown",
    ".py": "python",
    ".rs": "rust",
    ".rst": "rst",
    ".sh": "bash",
    ".srt": "subtitles",
    ".tex": "latex",
    ".toml": "toml",
    ".ts": "typescript",
    ".txt": "text",
    ".vtt": "subtitles",
    ".yaml": "yaml",
}


def read(name: str) -> str:
    return (DOCUMENTS / name).read_text(encoding="utf-8")


def kind_of(name: str) -> str:
    return "man" if name == "bzip2_man.txt" else KIND_OF_SUFFIX[Path(name).suffix]


@pytest.mark.parametrize("name", NAMES)
def test_documents_are_detected_with_and_without_their_names(name: str) -> None:
    text = read(name)
    assert detect_kind(text, {"source": f"https://example.org/{name}?raw=1"}) == kind_of(name)
    assert detect_kind(text) == kind_of(name)
    assert detect_kind(text.replace("\n", "\r\n")) == kind_of(name)


def test_a_script_is_detected_without_its_first_line() -> None:
    assert detect_kind(read("snapshot.sh").partition("\n")[2]) == "bash"


GRAMMARS = {
    "c": '#include <stdio.h>\n#define N 4\n\nint main(void)\n{\n    puts("hi");\n}\n',
    "cpp": "#include <vector>\n\nnamespace tea {\nclass Pot {\n public:\n  int size;\n};\n}\n",
    "csharp": "using System;\n\nnamespace Tea\n{\n    public class Pot\n    {\n    }\n}\n",
    "css": "body {\n  color: red;\n  margin: 0 auto;\n}\n\n.a > b {\n  top: 1px;\n}\n",
    "java": "package tea;\n\nimport java.util.List;\n\npublic class Pot {\n}\n",
    "javascript": "import { a } from './a.js';\n\nexport const b = 1;\nlet c = a(b);\n",
    "json": '{\n  "name": "tea",\n  "hot": true\n}\n',
    "php": "<?php\n\nnamespace Tea;\n\nclass Pot {}\n",
    "ruby": "require 'set'\n\nclass Pot < Base\n  def pour(cup)\n    cup << tea\n  end\nend\n",
    "sql": "-- Tea\nCREATE TABLE tea (\n  name TEXT\n);\n\nINSERT INTO tea VALUES ('green');\n",
    "toml": '# About\n[project]\nname = "tea"\nhot = true\n',
    "yaml": "# About\nname: tea\nsteps:\n  - boil\n  - pour\n",
    "lua": "local tea = {}\n\nfunction tea.pour(cup)\n  if cup then\n    return cup\n  end\nend\n",
    "perl": "use strict;\nuse warnings;\n\nsub pour {\n    my ($cup) = @_;\n}\n",
}


@pytest.mark.parametrize("kind", GRAMMARS)
def test_short_code_is_detected(kind: str) -> None:
    assert detect_kind(GRAMMARS[kind]) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("#!/bin/sh\n# a\n", "bash"),
        ("#!/usr/bin/env -S python3.12 -u\n", "python"),
        ("#!/opt/odd/tool\n# a\n", "code"),
        ("# Settings\n# Do not edit\n\n[main]\nuser = nobody\nport = 80\n", "code"),
        ("# Build\nCC := gcc\nCFLAGS = -O2\nall: a b\nOUT = x\nTMP = y\n", "code"),
        ("---\na: b\nc:\n  - d\n---\ne: f\n", "yaml"),
        ("---\na: b\nc:\n  =: d\n", "text"),  # no front matter, which a second mark ends
        ('[\n  {\n    "a": 1', "json"),
        ("<!DOCTYPE html><p>x", "html"),
        ("\n<html lang=en>", "html"),
        ("<?xml version='1.0'?><html><body><p>a</p></body></html>", "html"),
        ("<div><p>One</p><p>Two</p></div>", "html"),
        ("<section><h1>One</h1><p>Two.</p></section>", "html"),
        ('<feed xmlns="http://a">\n  <entry><title>Tea</title>', "xml"),  # only its beginning
        ("<feed>\n  <entry><title>Tea</title>", "html"),
        ("```\n<p></p><p></p>\n```", "markdown"),
        ("a | b\n--|--\n1 | 2", "markdown"),
        ("**a** and\n\n- b\n- c", "markdown"),
        ("Just words. 1 < 2.", "text"),
        ("Chapter 1\n\nwords", "text"),
        ("Tea is hot. <div>Milk is white.", "text"),
        ("Tea<p>Milk<p>" + "x " * 900, "text"),
        ("[link](a.html)", "markdown"),
        ("[1] See there.", "text"),
        ("Tea\n===\n\n[verse]\n'tea' <pot>\n\nhot::\n\tSee ``tea``.\n", "asciidoc"),
        ("Tea\n===\n\n* Boil:\n+\n------\ntea -a\n------\n", "asciidoc"),
        ("# Tea\n\n```\n[verse]\ntea\n```\n", "markdown"),
        ("From: Ann <a@b.c>\nSubject: Tea\n\nHot.", "mail"),
        ("From: Ann\nIt is hot.\n", "text"),
        ("Name: Ada\nPhone: 1\n\nText.", "text"),
        ("10:31:02 a\n10:31:04 b\n10:31:09 c\n", "log"),
        ("Dec  1 10:31:02 host sshd[1]: a\n" * 3, "log"),
        ("2024-05-01 10:31:02,123 INFO a\n" * 3, "log"),
        ("time,hot\n" + "2024-05-01 10:31:02,3\n" * 3, "csv"),
        ("2024-05-01 Ann\n\n\t* file.c: Fix.\n\n2024-04-30 Ben\n", "text"),
        ("a,b,c\n1,2,3\n4,5,6\n", "csv"),
        ('a,b\n1,"x, y"\n2,"z\nw"\n', "csv"),
        ("a\tb\n1\t2\n", "tsv"),
        (
            "Roses are red, violets blue\nSugar is sweet, and so are you\nSo it is, as it was\n",
            "text",
        ),
        ("= Tea\n:toc:\n\nHot.\n", "asciidoc"),
        ("= Tea\n\n[,ruby]\n----\nclass Tea\n  def pour\n  end\nend\n----\n", "asciidoc"),
        ("* Tea\n:PROPERTIES:\n:ID: 1\n:END:\n", "org"),
        ("* Tea\n* Milk\n** Hot\n", "text"),
        ("== Tea ==\n\nHot.\n\n=== Green ===\n", "text"),
        ("== Tea ==\n\n# Boil.\n\n* Hot.\n\n== Green ==\n\n# Cool.\n", "text"),
        ("h1. Tea\n\n<p>Hot.</p>\n\n<br/>\n\nh2. Green\n\n# Cool.\n", "text"),
        ("Tea\n~~~\n\nUse :func:`pour`.\n\n.. note::\n\n   Hot.\n", "rst"),
        ("Tea\n===\n\nHot.\n", "text"),
        ("NAME\n     tea - make tea\n\nSYNOPSIS\n     tea [-g]\n", "man"),
        ("\\documentclass{a}\n\\begin{document}\n\\section{Tea}\nHot.\n\\end{document}\n", "latex"),
        ("# Formula\n\n\\begin{align}\nx\n\\end{align}\n", "markdown"),
        (
            "import os\nimport sys\n\nTEXT = (\n"
            '"Pour the tea into the cup that "\n"is made of glass, and wait until "\n'
            '"it is no longer as hot as it was"\n"when you did so, and drink it then"\n)\n',
            "python",
        ),
        ("# One comment\n# and one more\n# and more\nplain\n", "text"),
        ("import duties rose by ten percent\nimport taxes fell, too\n", "text"),
        ("from here to there\nfrom there to here\nand back, they went on.\n", "text"),
        ("Call f(x);\nthen call g(y);\n\nIt works in most of the cases that we know.\n", "text"),
        ("1\n00:00:01,000 --> 00:00:02,000\nHello.\n", "subtitles"),
        ("\ufeff# Tea\n\nHot.", "markdown"),
        ("", "text"),
        (" \n", "text"),
    ],
)
def test_texts_are_detected_by_their_content(text: str, kind: str) -> None:
    assert detect_kind(text) == kind


@pytest.mark.parametrize(
    ("text", "metadata", "kind"),
    [
        ("# TODO", {"source": "a.py"}, "python"),
        ("# TODO", {"file_name": "Dockerfile"}, "code"),
        ("# TODO", {"file_path": r"C:\a\Gemfile"}, "ruby"),
        ("# TODO", {"file_type": "text/x-python"}, "python"),
        ("# TODO", {"content_type": "application/yaml; charset=utf-8"}, "yaml"),
        ("# TODO", {"mimetype": "text/plain", "source": "a.toml"}, "toml"),
        ("# TODO", {"language": "python", "source": "a.ipynb"}, "python"),
        ("TODO", {"source": "a.Rmd"}, "markdown"),
        ("# TODO", {"source": "a.prisma"}, "code"),
        ("<TEI>", {"source": "a.tei"}, "xml"),
        # loaders that take the marks out
        ("Just words.", {"source": "a.html"}, "text"),
        ("# Title", {"source": "a.html"}, "markdown"),
        ("tool: jigsaw\nprice: 40", {"source": "a.csv"}, "text"),
        ("It was on page 3.", {"source": "a.json"}, "text"),
        ("It was on page 3.", {"source": "chapter.1"}, "text"),
        ("Just words.", {"source": "a.eml"}, "text"),
        ("<p>Hot.", {"source": "a.html"}, "html"),
        ("<p>Hot.", {"source": "a.php", "content_type": "text/html"}, "html"),
        ("a,b\n1,2,3\n4,5\n", {"source": "a.csv"}, "csv"),
        # the Czech language is no C#
        ("Voda je horká a čaj je zelený, řekl pán domu.", {"language": "cs"}, "text"),
        ("var x = 1;", {"language": "cs"}, "csharp"),
        ("pip install tea", {"language": "sh"}, "bash"),
    ],
)
def test_names_and_types_come_first(text: str, metadata: dict[str, Any], kind: str) -> None:
    assert detect_kind(text, metadata) == kind


def test_language_is_that_of_code_and_markup() -> None:
    assert language_of({"source": "a.ipynb"}, '{"cells": [{"cell_type": "code"}]}') == "json"
    assert language_of({}, "Just words.") is None
    assert language_of({"source": "Makefile"}) is None


def test_no_name_belongs_to_two_kinds() -> None:
    for field in ("suffixes", "aliases", "names", "interpreters"):
        values = [each for kind in KINDS.values() for each in getattr(kind, field).split()]
        assert len(values) == len(set(values)), field


@pytest.mark.parametrize(
    "name", ["events.py", "lease.go", "planner.ts", "ring.rs", "pipeline.yaml"]
)
def test_code_chunker_needs_no_name(name: str) -> None:
    chunker, text = CodeChunker(chunk_size=800), read(name)
    bare, named = chunker.chunk(text), chunker.chunk(text, metadata={"source": name})
    assert [chunk.text for chunk in bare] == [chunk.text for chunk in named]
    assert bare[0].metadata["language"] == kind_of(name)
    assert any("definitions" in chunk.metadata for chunk in bare)


@pytest.mark.parametrize("name", ["snapshot.sh", "pipeline.yaml", "harbour.toml", "events.py"])
def test_comments_of_code_are_no_headings(name: str) -> None:
    for chunk in ContentAwareChunker(chunk_size=800).chunk(read(name)):
        assert "headings" not in chunk.metadata


def test_csv_is_one_table() -> None:
    chunks = TableChunker(chunk_size=800).chunk(read("loans.csv"))
    assert {chunk.metadata["modality"] for chunk in chunks} == {"table"}
    chunks = ModalityChunker().chunk("a;b\n1;2\n\n3;4\n", metadata={"file_type": "text/csv"})
    assert {chunk.metadata["modality"] for chunk in chunks} == {"table"}


UNITS = (
    *("a ", "a\n", "# ", "# a\n", "```\n", "~~~\n", "/*", '"""', "<p", "<!--", "[", "{", '{"'),
    *("a: ", "a:\n", "[a]\n", '"', ",", "\\a", "=", "= a\n", ".. ", "`", ":a:", "a::\n ", "|"),
    "From: a\n",
)


def test_detection_is_bounded() -> None:
    """Counts the characters that are looked at: no more for a long text than for a short one."""
    for unit in UNITS:
        texts = ((unit * 100_000)[: 100_000 * times] for times in (1, 4))
        short, long = (count_calls(partial(detect_kind, text)) for text in texts)
        assert long <= short + 10, (unit, short, long)


def test_front_ends_pass_the_name_of_a_file() -> None:
    from langchain_core.documents import Document
    from llama_index.core.schema import Document as LlamaDocument

    from rag_splitters.langchain import ContentAwareTextSplitter
    from rag_splitters.llama_index import ContentAwareNodeParser

    text = "# TODO\n\n" + "x = 1\n" * 30
    for name, has_headings in (("a.md", True), ("a.conf", False)):
        documents = [Document(text, metadata={"source": name})]
        chunks = ContentAwareTextSplitter(chunk_size=80).split_documents(documents)
        assert ("headings" in chunks[0].metadata) is has_headings
        parser = ContentAwareNodeParser(chunk_size=80, length_function="characters")
        nodes = parser.get_nodes_from_documents(
            [LlamaDocument(text=text, metadata={"file_name": name})]
        )
        assert ("headings" in nodes[0].metadata) is has_headings


@pytest.mark.parametrize("metadata", [{"source": "a/b.PDF"}, {"file_type": "application/pdf"}])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("# Install\n\nRun it.\n\n## Linux\n\nMake it.\n", "markdown"),
        ("import os\nimport sys\nprint(os.name)\n", "text"),
        ("a,b,c\n1,2,3\n4,5,6\n", "text"),
        ("The ships came in.\nThey left.\n", "text"),
    ],
)
def test_a_pdf_holds_prose_or_what_its_parser_wrote_in_markdown(
    text: str, kind: str, metadata: dict[str, Any]
) -> None:
    assert detect_kind(text, metadata) == kind
    assert detect_kind(text, {**metadata, "page_start": 1}) == "text", "read by FileLoader"


def test_manual_in_perl_leaves_it_code() -> None:
    pod = "=head1 NAME\n\nTea - pours tea\n\n=head1 USE\n\nPour it.\n\n=cut\n"
    code = (
        "package Tea;\n\nuse strict;\nuse warnings;\n\nsub pour {\n    my ($pot) = @_;\n}\n\n1;\n"
    )
    assert (detect_kind(pod), detect_kind(f"{code}\n{pod}")) == ("text", "perl")
