"""JsonChunker: paths, cuts between members, bad input, and time."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document
from llama_index.core.schema import MetadataMode

from rag_splitters import JsonChunker
from rag_splitters.langchain import JsonTextSplitter
from rag_splitters.llama_index import JsonNodeParser
from rag_splitters.testing import HOSTILE_PIECES
from tests.support.checks import check_chunker
from tests.support.counting import count_calls

_STEP = re.compile(r"\.(\w+)|\['((?:\\.|[^'\\])*)'\]|\[(\d+):(\d+)\]|\[(\d+)\]")
_WHOLE_STEPS = re.compile(rf"\$(?:{_STEP.pattern})*\Z")


def resolve(value: Any, path: str) -> list[Any]:
    """The values that a path names, one or the elements of a slice; as RFC 9535 has it."""
    assert _WHOLE_STEPS.match(path), path
    values = [value]
    for name, quoted, low, high, number in _STEP.findall(path):
        (value,) = values
        if low:
            values = value[int(low) : int(high)]
        elif number:
            values = [value[int(number)]]
        else:
            key = name or json.loads('"' + quoted.replace("\\'", "'").replace('"', '\\"') + '"')
            values = [value[key]]
    return values


def numbers_in(value: Any) -> set[int]:
    if isinstance(value, dict):
        return set().union(*map(numbers_in, value.values()))
    if isinstance(value, list):
        return set().union(*map(numbers_in, value))
    return {value} if type(value) is int else set()


def numbered(value: Any, counter: list[int]) -> Any:
    """The value with a number of its own in the place of each number."""
    if isinstance(value, dict):
        return {key: numbered(each, counter) for key, each in value.items()}
    if isinstance(value, list):
        return [numbered(each, counter) for each in value]
    if isinstance(value, int) and not isinstance(value, bool):
        counter[0] += 1
        return 1000 + counter[0]
    return value


keys = st.sampled_from(["a", "b b", "it's", 'q"', "ключ", "x\\y", "", "\n", "k" * 99])
leaves = st.integers() | st.none() | st.booleans() | st.sampled_from(HOSTILE_PIECES)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=30,
)


@pytest.mark.parametrize(
    ("name", "step"), [("k" * 100, "." + "k" * 100), ("k" * 101, f"['{'k' * 100}…']")]
)
def test_path_shortens_a_name_above_a_hundred_characters(name: str, step: str) -> None:
    chunks = JsonChunker(chunk_size=150).chunk(json.dumps({name: "word " * 40}))
    assert chunks[-1].metadata["json_path"] == f"${step}"


@example(
    tops=[{"a": [0], "b b": {"a": None, "b b": 0, "": None}}, [], []],
    indent=None,
    is_ascii=False,
    chunker=JsonChunker(chunk_size=60, chunk_overlap=15),
)
@given(
    tops=st.lists(values, min_size=1, max_size=3),
    indent=st.sampled_from([None, 1, 4]),
    is_ascii=st.booleans(),
    chunker=st.sampled_from(
        [
            JsonChunker(chunk_size=20),
            JsonChunker(chunk_size=60, chunk_overlap=15),
            JsonChunker(chunk_size=80, with_path=True),
            JsonChunker(chunk_size=15, length_function="tokens", min_chunk_size=5),
        ]
    ),
)
def test_paths_name_the_values_that_hold_the_chunk(
    tops: list[Any], indent: int | None, is_ascii: bool, chunker: JsonChunker
) -> None:
    counter = [0]
    tops = [numbered(each, counter) for each in tops]
    text = "\n".join(json.dumps(each, indent=indent, ensure_ascii=is_ascii) for each in tops)
    top = tops[0] if len(tops) == 1 else tops
    end = 0
    for span in check_chunker(chunker, text):
        assert "fallback" not in span.metadata
        own = text[max(span.start, end) : span.end]
        end = span.end
        named = resolve(top, span.metadata["json_path"])
        whole = {int(n) for n in re.findall(r"(?<![\w\"])1\d{3}(?=[\s,\]}])", own)}
        assert whole <= numbers_in(named) | {1000}
        if span.content is not None:
            assert span.content == f"{span.context}\n\n{text[span.start : span.end]}"
            assert span.metadata["json_path"].endswith(str(span.context).lstrip("$."))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b": }', "invalid JSON in line 2"),
        ('{"a": [1, 2', "invalid JSON: it ends too early"),
        ("[1, 2]]", "invalid JSON in line 1"),
        ('{"a": "\\q"}', "invalid JSON in line 1"),
        ("[1,\n\n  // two\n2]", "invalid JSON in line 3"),
        ('{"a": 01}', "invalid JSON in line 1"),
        ("[1 2]", "invalid JSON in line 1"),
        ('{"a"}', "invalid JSON in line 1"),
        ('{"a": 1,}', "invalid JSON in line 1"),
        ("Boil water.", "invalid JSON in line 1"),
        ('{"unclosed', "invalid JSON in line 1"),
    ],
)
def test_bad_json_is_cut_as_text_and_says_so(text: str, message: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (that Python refuses it is enough)
        json.loads(text)
    chunks = JsonChunker().chunk(text)
    assert [(c.text, c.metadata["fallback"]) for c in chunks] == [(text, message)]


@pytest.mark.parametrize("text", ["1", "[]", ' {"a": -1.5e3} ', "\ufeff[NaN, -Infinity]", '"x"'])
def test_any_json_value_is_read(text: str) -> None:
    (chunk,) = JsonChunker().chunk(text)
    assert chunk.metadata == {"json_path": "$", "chunk_index": 0}


def test_all_forms_give_the_same_chunks() -> None:
    data = {"teas": [{"name": f"tea {n}", "minutes": n} for n in range(9)]}
    text = json.dumps(data)
    options: dict[str, Any] = {"chunk_size": 80, "with_path": True}
    documents = JsonTextSplitter(**options).split_documents([LangChainDocument(text)])
    parser = JsonNodeParser(**options, length_function="characters", count_metadata=False)
    nodes = asyncio.run(parser.aget_nodes_from_documents([Document(text=text)]))
    assert [each.metadata["json_path"] for each in documents] == [
        node.metadata["json_path"] for node in nodes
    ]
    assert documents[1].page_content.startswith("$.teas[1:3]\n\n{")
    assert nodes[1].get_content(MetadataMode.NONE).startswith('{"name": "tea 1"')
    assert "$.teas[1:3]" in nodes[1].get_content(MetadataMode.EMBED)


@pytest.mark.slow
@pytest.mark.parametrize(
    "nested",
    [
        lambda n: "[" * n + "]" * n,
        lambda n: '{"a": [1, ' * n + "1" + "]}" * n,
        lambda n: '{"' + "k" * n + '": [1, 2]}',
        lambda n: '"' + "\\\\" * n + '"',
        lambda n: '"' + "\\\\" * n,
        lambda n: json.dumps([{"a": [number]} for number in range(n // 8)]),
    ],
)
def test_work_grows_linearly(nested: Any) -> None:
    """Counts the calls; a quadratic pattern would take minutes for the last text."""
    chunker = JsonChunker(chunk_size=100)
    short, long = (count_calls(partial(chunker.spans, nested(times * 2000))) for times in (1, 4))
    assert long < 6 * short + 5000, (short, long)
    assert JsonChunker(chunk_size=1000).spans(nested(100_000))
