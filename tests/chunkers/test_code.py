"""CodeChunker: golden cuts of every language, positions, fallbacks, hostile inputs."""

# ruff: noqa: E501 (golden chunks stand on one line)

from __future__ import annotations

import ast
import asyncio
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import Language

import rag_splitters
from rag_splitters import Chunker, RecursiveChunker
from rag_splitters.chunkers.code import CodeChunker
from rag_splitters.structure import syntax
from rag_splitters.structure.kinds import language_of
from rag_splitters.structure.languages import LANGUAGES
from rag_splitters.structure.signatures import find_signatures
from rag_splitters.testing import hostile_texts
from tests.chunkers.test_golden import FOLDER, read_cases
from tests.structure.test_blocks import many
from tests.support.checks import check_chunker
from tests.support.counting import record_calls
from tests.support.splitting import asplit_texts, split_texts


def test_every_grammar_has_a_golden_example() -> None:
    languages = {case.chunker.language for case in read_cases(FOLDER / "code.md")}  # type: ignore[attr-defined]
    assert languages >= {name for name, each in LANGUAGES.items() if each.grammar}


@pytest.mark.parametrize(
    "path",
    sorted(Path(rag_splitters.__file__).parent.glob("text/*.py")),
    ids=lambda path: path.name,
)
def test_own_source_is_cut_into_whole_definitions(path: Path) -> None:
    text, size = path.read_text(encoding="utf-8"), 2500
    spans = CodeChunker(chunk_size=size, language="python").spans(text)
    cuts = {span.start for span in spans}
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            start, end = lines[first - 1], lines[node.end_lineno or first]
            inside = {cut for cut in cuts if start < cut < end}
            assert end - start > size or not inside, f"{node.name} is cut at {inside}"


def test_positions_are_code_points() -> None:
    text = 'NAME = "👩‍👩‍👧 é 日本 \U0001d54f"\n\n\ndef größe(x):\n    return "\ud800"\n\n\ndef b():\n    pass\n'
    spans = check_chunker(CodeChunker(chunk_size=40, language="python"), text)
    assert [span.start for span in spans] == [0, text.index("def größe"), text.index("def b")]
    assert [span.metadata.get("definitions") for span in spans] == [None, ["größe"], ["b"]]


def test_indentation_of_the_first_line_is_kept() -> None:
    text = "def a():\n" + "".join(f"    if b{i}:\n        return {i}\n" for i in range(40))
    for chunk in CodeChunker(chunk_size=100, language="python").chunk(text)[1:]:
        assert chunk.text.startswith("    if b")
        assert chunk.start == 0 or text[chunk.start - 1] == "\n"


def test_indentation_that_would_fill_a_chunk_is_left_out() -> None:
    text = " " * 30 + "first second third"
    chunks = CodeChunker(chunk_size=20).chunk(text)
    assert [chunk.text for chunk in chunks] == ["first second third"]


def test_blank_line_separates_a_comment_from_what_follows() -> None:
    text = "# A licence of some length, and more.\n\n# Of a.\ndef a():\n    pass"
    chunks = CodeChunker(chunk_size=40, language="python").chunk(text)
    assert [chunk.text for chunk in chunks] == [text[:37], text[39:]]


@pytest.mark.parametrize("size", [39, 50])
def test_variable_keeps_its_docstring(size: int) -> None:
    text = 'class A:\n    one: int = 1\n    """The first."""\n\n    two: int = 2\n    """The second."""\n'
    *_, last = CodeChunker(chunk_size=size, language="python").chunk(text)
    assert last.text == '    two: int = 2\n    """The second."""'


def test_end_tag_stays_with_what_it_ends() -> None:
    parts = ["<div>\n<p>Aaaa</p>", "<p>Bbbb</p>\n</div>\n<p>Cccc</p>"]
    chunks = CodeChunker(chunk_size=30, language="html").chunk("\n".join(parts))
    assert [chunk.text for chunk in chunks] == parts


def test_definition_inside_a_line_is_named() -> None:
    text = "export function pour() { return 1 }\nexport class Pot { fill() { return 2 } }\n"
    spans = CodeChunker(chunk_size=45, language="javascript").spans(text)
    assert [span.metadata.get("definitions") for span in spans] == [["pour"], ["Pot"]]


def test_minified_code_is_cut_inside_the_line() -> None:
    text = "".join(f"function f{i}(a,b){{return a+b+{i}}};" for i in range(200))
    chunks = CodeChunker(chunk_size=500, language="js").chunk(text)
    assert all(chunk.text.startswith("function f") for chunk in chunks)


def test_local_error_does_not_spoil_the_rest() -> None:
    good = "".join(f"def f{i}(a):\n    return a\n\n\n" for i in range(20))
    spans = CodeChunker(chunk_size=30, language="python").spans(good + "def (:\n\n\n" + good)
    assert not any("fallback" in span.metadata for span in spans)
    assert sum(span.metadata.get("definitions", [""])[0].startswith("f") for span in spans) > 30


@pytest.mark.parametrize(
    ("text", "language", "metadata"),
    [
        ("}}} ((( not code at all ]]]", "java", {"language": "java", "fallback": "syntax error"}),
        (
            "He said; it isn't so. " * 900,
            "python",
            {"language": "python", "fallback": "syntax error"},
        ),
        ("[[a]]\n" * 20_000, "c", {"language": "c", "fallback": "syntax error"}),
        ("(a)" * 30_000, "bash", {"language": "bash", "fallback": "syntax error"}),
        ("k: v\n" * 20_000, "css", {"language": "css", "fallback": "too complex"}),
        ("a<" * 5000, "java", {"language": "java", "fallback": "too complex"}),
        (
            "int a;\n" * 2000 + "a /* b\n" * 10_000,
            "c",
            {"language": "c", "fallback": "too complex"},
        ),
        ("- " * 5000 + "x", "yaml", {"language": "yaml", "fallback": "too complex"}),
        ("#" * 5000, "swift", {"language": "swift", "fallback": "too complex"}),
        (
            "x = " + "<a><b> " * 5000 + "y",
            "typescript",
            {"language": "typescript", "fallback": "too complex"},
        ),
        ("fun main() {}", "kotlin", {"language": "kotlin", "fallback": "no grammar"}),
        ("some text", "klingon", {"fallback": "unknown language"}),
        ("some text", "auto", {"fallback": "unknown language"}),
    ],
)
def test_fallback_says_why(text: str, language: str, metadata: dict[str, str]) -> None:
    spans = CodeChunker(chunk_size=1000, language=language).spans(text)
    assert [dict(span.metadata) for span in spans] == [metadata] * len(spans)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("c", "unsigned char a[] = {\n" + ("0x00, " * 12 + "\n") * 2000 + "};\n"),
        ("json", "[" + "1," * 20_000 + "1]"),
        (
            "csharp",
            "namespace N {\n class A {\n" + "  int F(int a) { return a; }\n" * 900 + " }\n}\n",
        ),
        ("bash", "f() {\n" + "  echo $a | sort; a=1\n" * 900 + "}\n"),
        ("javascript", "!function(){" + "var a=b(c);if(a)d();else e(f,g);" * 900 + "}()"),
    ],
)
def test_long_code_is_no_fallback_for_the_cut_of_its_probe(language: str, text: str) -> None:
    assert "fallback" not in CodeChunker(language=language).spans(text)[0].metadata


def test_fallback_cuts_at_the_separators_of_the_language() -> None:
    text = "fun a() {\n    one()\n}\nfun b() {\n    two()\n}\n"
    chunks = CodeChunker(chunk_size=30, language=Language.KOTLIN).chunk(text)
    assert [chunk.text[:7] for chunk in chunks] == ["fun a()", "fun b()"]


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({"source": "src/a.py"}, "python"),
        ({"file_name": "A.JAVA"}, "java"),
        ({"file_path": r"C:\src\a.d.ts"}, "typescript"),
        ({"source": Path("x/a.rs")}, "rust"),
        ({"source": "https://e.org/x.go?a=b.py#c.rb"}, "go"),
        ({"source": "https://[broken/x.go"}, "go"),
        ({"language": Language.JS, "source": "x.py"}, "javascript"),
        ({"language": "en", "source": "x.py"}, "python"),
        ({"source": "notes.txt"}, None),
        ({"source": ".py", "file_name": None}, None),
        ({}, None),
    ],
)
def test_language_is_read_from_metadata(metadata: dict[str, Any], language: str | None) -> None:
    assert language_of(metadata) == language
    chunker, text = CodeChunker(), "a = 1"
    spans = split_texts(chunker, [text], [metadata])
    assert spans[0][0].metadata.get("language") == language
    assert asyncio.run(asplit_texts(chunker, [text], [metadata])) == spans


def test_language_of_the_parameter_comes_before_the_metadata() -> None:
    chunk = CodeChunker(language="TS").chunk("let a = 1", metadata={"source": "a.py"})[0]
    assert chunk.metadata["language"] == "typescript"


@pytest.mark.parametrize("module", ["tree_sitter", "tree_sitter_go"])
def test_missing_extra_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    syntax._grammar.cache_clear()
    with pytest.raises(ImportError, match=r"pip install .*\[code\]"):
        CodeChunker(language="go").spans("package a")
    assert CodeChunker(language="klingon").spans("package a")


CODE_PIECES = (
    *("def f(a):\n", "    return 1\n", "class A:\n", "    @p\n", "@q(1)\n", "# note\n"),
    *('"""', "'''"),
    *("function g() {\n", "}\n", "};", "const x = () => {\n", "/* c */\n", "// d\n"),
    *("`${", "<div>\n"),
    *("pub fn h() -> i32 {\n", "#[a]\n", "impl T for U {\n", "package a;\n", "\t"),
    *("    ", "        "),
    *("- a: b\n", "  c:\n", "[t]\n", "k = 1\n", '{"a": [1,\n', "]}\n"),
    *("SELECT a FROM b;\n", "<?php\n"),
    *("日本語", "👩‍👩‍👧", "é", "\ud800", "\x00", "\r\n", "\r", "\n\n", " ", "(", ")", "<"),
    *(";", "\\", "$("),
    *("do |x|\n", "end\n", "<<~A\n", "cat <<A\n", "template <class T>\n", "public:\n"),
    *("\u0301", "x = 1\n"),
)
code_texts = st.lists(st.sampled_from(CODE_PIECES), max_size=40).map("".join)
SIZES = (
    {"chunk_size": 30},
    {"chunk_size": 1},
    {"chunk_size": 25, "chunk_overlap": 9},
    {"chunk_size": 5, "chunk_overlap": 2, "length_function": "words"},
    {"chunk_size": 12, "chunk_overlap": 4, "length_function": "tokens"},
)


@given(
    text=code_texts | hostile_texts(),
    language=st.sampled_from([*LANGUAGES, "auto"]),
    sizes=st.sampled_from(SIZES),
)
@many
def test_chunker_keeps_the_guarantees(text: str, language: str, sizes: dict[str, Any]) -> None:
    check_chunker(CodeChunker(language=language, **sizes), text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["(", "{", "function a(){", "x", "\n", "a(b, c);\n", "if (a) {\n", "/** b */\nclass A {}\n"],
)
def test_steps_grow_with_the_text(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes visited are counted, and depth costs no recursion."""
    visits = record_calls(monkeypatch, syntax._Reader, "_visit")
    counts = []
    for number in (5_000, 20_000):
        visits.clear()
        spans = CodeChunker(language="javascript").spans(piece * number + "x")
        assert all(one.end <= other.start for one, other in pairwise(spans))
        counts.append(len(visits))
    assert counts[1] <= 4 * counts[0] + 100


def test_deep_nesting_is_read_without_recursion() -> None:
    for text in ("(" * 100_000, "[" * 100_000 + "]" * 100_000, "function a(){" * 30_000):
        spans = CodeChunker(language="javascript").spans(text)
        assert spans[-1].end == len(text)
        assert all(len(span.metadata.get("definitions", [])) <= 32 for span in spans)


def test_parsing_keeps_no_texts() -> None:
    """tree-sitter's binding keeps what its read callback returns: only ever the same buffers."""
    CodeChunker(language="python").spans("a = 1\n" * 5000)
    before = [id(buffer) for buffer in syntax._BUFFERS]
    for number in range(50):
        CodeChunker(language="python").spans(f"a = {number}\n" * 2000)
    assert [id(buffer) for buffer in syntax._BUFFERS] == before


SIGNATURES = {
    "python": (
        "# Boils the water.\n# It takes a while.\n@cache\n@retry(times=3)\n"
        "async def boil(\n    water: Water,\n    degrees: int = 100,\n    *,\n    lid: bool,\n"
        ") -> Water:\n",
        "    for degree in range(degrees):\n        water.heat(degree)\n    return water\n",
    ),
    "rust": (
        "/// Boils the water.\n///\n/// It takes a while.\n#[must_use]\n#[inline]\n"
        "pub(crate) fn boil<W>(\n    water: W,\n    degrees: u32,\n    lid: bool,\n"
        ") -> W\nwhere\n    W: Water,\n{\n",
        "    for degree in 0..degrees {\n        water.heat(degree);\n    }\n    water\n}\n",
    ),
    "go": (
        "// Boil boils the water.\n// It takes a while.\n"
        "func (k *Kettle) Boil(\n\twater Water,\n\tdegrees int,\n) (Water, error) {\n",
        "\tfor i := 0; i < degrees; i++ {\n\t\twater.Heat(i)\n\t}\n\treturn water, nil\n}\n",
    ),
    "ts": (
        "/**\n * Boils the water.\n * It takes a while.\n */\nexport async function boil(\n"
        "  water: Water,\n  degrees: number,\n  lid = true,\n): Promise<Water> {\n",
        "  for (let i = 0; i < degrees; i++) {\n    water.heat(i);\n  }\n  return water;\n}\n",
    ),
    "java": (
        '    /**\n     * Boils the water.\n     */\n    @Override\n    @SuppressWarnings("x")\n'
        "    public static Water boil(\n            Water water,\n            int degrees)\n"
        "            throws IOException {\n",
        "        for (int i = 0; i < degrees; i++) {\n            water.heat(i);\n        }\n"
        "        return water;\n    }\n",
    ),
    "cpp": (
        "// Boils the water.\n// It takes a while.\nstd::vector<Water> Kettle::boil(\n"
        "    const Water& water,\n    int degrees,\n    bool lid) const {\n",
        "  for (int i = 0; i < degrees; i++) {\n    water.heat(i);\n  }\n  return {water};\n}\n",
    ),
}
"""For each language, a signature with what belongs to it, and a body."""


def chunkers_of(language: str, size: int) -> list[Chunker]:
    return [
        CodeChunker(chunk_size=size, language=language),
        RecursiveChunker(chunk_size=size, language=language),
    ]


@pytest.mark.parametrize("language", SIGNATURES)
@pytest.mark.parametrize("number", [0, 1], ids=["CodeChunker", "RecursiveChunker"])
def test_signature_that_fits_is_whole_with_what_belongs_to_it(language: str, number: int) -> None:
    signature, body = SIGNATURES[language]
    whole = signature.strip()
    wrapped = "class Kettle {\n" if language == "java" else ""
    for size in range(len(signature), len(signature + body) + 100, 23):
        chunker = chunkers_of(language, size)[number]
        for before in ("", f"{signature}{body}\n"):
            text = f"{wrapped}{before}{signature}{body}\n{signature}{body}"
            chunks = [chunk.text for chunk in chunker.chunk(text)]
            count = sum(chunk.count(whole) for chunk in chunks)
            assert count == text.count(whole), (size, chunks)
            assert all(chunk.strip() != whole.rpartition("\n")[2] for chunk in chunks)


def test_last_lines_of_a_definition_are_not_alone() -> None:
    body = "".join(f"    number_{number} = compute({number})\n" for number in range(9))
    text = f"def first():\n{body}    return 1\n\n\ndef second():\n{body}    return 2\n"
    for size in range(150, 220, 7):
        chunks = [
            chunk.text for chunk in CodeChunker(chunk_size=size, language="python").chunk(text)
        ]
        assert len(chunks) > 2
        assert min(map(len, chunks)) * 10 >= size, chunks


def test_class_line_and_docstring_are_kept_with_the_signature() -> None:
    docstring = '    """Boils.\n\n    It takes a while. It may boil over.\n    """'
    lines = "    x = 1\n" * 9
    text = f"class Kettle:\n    size = 1\n\n{lines}\ndef boil():\n{docstring}\n{lines * 3}"
    for chunker in chunkers_of("python", 100):
        assert any(f"def boil():\n{docstring}" in chunk.text for chunk in chunker.chunk(text))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("java", "if (a) {\n}"),
        ("ts", "describe('it', () => {\n  f();\n});"),
        ("cpp", "return f(a);\n"),
        ("cpp", "f(a);\n"),
        ("python", "class of things\n"),
        ("python", "def f(\n\n"),
        ("markdown", "def f():\n"),
    ],
)
def test_other_lines_are_no_signatures(language: str, text: str) -> None:
    assert list(find_signatures(text, language)) == []


@given(data=st.data(), language=st.sampled_from(sorted(SIGNATURES)))
def test_presets_keep_the_guarantees(data: st.DataObject, language: str) -> None:
    parts = [*"".join(SIGNATURES[language]).splitlines(keepends=True), "def f(", "{", "}\n", "\n"]
    text = "".join(data.draw(st.lists(st.sampled_from(parts), max_size=30)))
    check_chunker(RecursiveChunker(chunk_size=60, chunk_overlap=15, language=language), text)
    check_chunker(CodeChunker(chunk_size=60, chunk_overlap=15, language=language), text)


def test_a_resource_of_yaml_begins_a_chunk() -> None:
    resource = "kind: Service\nmetadata:\n  name: web{n}\nspec:\n  ports:\n    - port: 80\n      name: http\n"
    text = "---\n".join(resource.replace("{n}", str(n)) for n in range(5))
    for size, resources in ((110, 1), (220, 2)):
        chunks = CodeChunker(language="yaml", chunk_size=size, chunk_overlap=0).chunk(text)
        assert [chunk.text.count("kind:") for chunk in chunks[:-1]] == [resources] * (
            len(chunks) - 1
        )
        assert all(chunk.text.startswith("---\nkind") for chunk in chunks[1:])


def test_no_line_is_cut_to_keep_the_comment_above_with_its_code() -> None:
    comment = "# It is raised if somebody sends what nobody should send, and names who sent it.\n"
    text = f"# There are errors.\n\n{comment}class Wrong(Exception):\n    def __init__(self, sender, sent):\n"
    text += "        self.sender = sender\n        # what it was that was sent\n        self.sent = sent\n"
    lines = {line.strip() for line in text.splitlines()}
    for size in range(len(comment) + 30, len(text)):
        for chunk in CodeChunker(chunk_size=size, language="python").chunk(text):
            assert lines.issuperset(line.strip() for line in chunk.text.splitlines()), size


def test_the_opening_of_a_long_string_is_no_chunk_of_its_own() -> None:
    text = (
        'fn main() {\n    show(\n        r#"\n' + "<p>one more line</p>\n" * 9 + '"#,\n    );\n}\n'
    )
    chunks = CodeChunker(chunk_size=100, language="rust").chunk(text)
    assert not any(chunk.text.endswith('r#"') for chunk in chunks)


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_few_errors_before_many_blank_lines_are_no_fallback(line_break: str) -> None:
    code = "def boil(water):\n    return water.heat(100)\n\n? ?\n" + "\n" * 99
    chunks = CodeChunker(language="python").chunk(code.replace("\n", line_break))
    assert "fallback" not in chunks[0].metadata
