"""TableSplitter: the same chunks and ids as the front ends, in the same columns for every input."""

from __future__ import annotations

import json
import os
import pickle
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_splitters.langchain
import rag_splitters.llama_index
from rag_splitters import (
    AgenticChunker,
    Chunker,
    ContextualChunker,
    EntityChunker,
    HierarchicalChunker,
    HybridChunker,
    PageChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
    SeparatorChunker,
    Span,
    TitledChunker,
    TokenChunker,
)
from rag_splitters.distributed import TableSplitter, columns, splitter
from rag_splitters.errors import RagSplittersError
from rag_splitters.testing import hostile_texts
from rag_splitters.text.surrogates import without_surrogates
from tests.support.cases import CASES
from tests.support.forms import front_end
from tests.support.tables import (
    DOCUMENTS,
    RAIN,
    Given,
    NotedEmbeddings,
    expected,
    fail_on_boom,
    of_rows,
    table_of,
)

CHUNKS = (
    "chunk_id document_id text start_index end_index chunk_index parent_id headings level modality "
    "page_start page_end chunk_metadata"
).split()
SENTENCES = SentenceChunker(chunk_size=12)

documents = st.lists(
    st.builds(
        Given,
        st.none() | st.sampled_from(["a", "b", "ä"]),
        st.none() | hostile_texts(max_pieces=20).map(without_surrogates),
        st.none() | st.just("Title"),
        st.none() | st.integers(0, 9),
    ),
    max_size=4,
)
fewer = settings(max_examples=6)


# The same as the front ends


@pytest.mark.slow
@pytest.mark.parametrize("strategy", CASES)
@fewer
@given(documents=documents, batch_size=st.integers(1, 5), cut=st.integers(0, 4))
def test_table_has_the_chunks_of_the_front_ends(
    strategy: str, documents: list[Given], batch_size: int, cut: int
) -> None:
    """Whatever the batches, and however the table lies in memory."""
    whole = table_of(documents)
    given = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    for chunker in CASES[strategy]:
        splitting = TableSplitter(chunker, id_column="key", batch_size=batch_size)
        chunks = splitting.split_table(given)
        assert chunks.schema == splitting.output_schema(given.schema)
        assert of_rows(chunks.to_pylist()) == expected(front_end(chunker, "langchain"), documents)
        chunks.validate(full=True)


@pytest.mark.parametrize("module", ["langchain", "llama_index"])
@pytest.mark.parametrize("page_break", ["\f", None])
def test_front_end_is_taken_as_the_chunker(module: str, page_break: str | None) -> None:
    options: dict[str, Any] = {
        "chunk_size": 30,
        "length_function": "characters",
        "page_break": page_break,
    }
    splitter = rag_splitters.langchain.SentenceTextSplitter(**options)
    if module == "llama_index":
        kind: Any = rag_splitters.llama_index.SentenceNodeParser
    else:
        kind = rag_splitters.langchain.SentenceTextSplitter
    chunks = TableSplitter(kind(**options), id_column="key")
    rows = of_rows(chunks.split_table(table_of(DOCUMENTS)).to_pylist())
    assert rows == expected(splitter)
    assert any("page_start" in row for row in rows) == (page_break is not None)


class Rewriting(rag_splitters.langchain.SentenceTextSplitter):
    """Rewrites its chunks, so that the positions of some are unknown."""

    def split_text(self, text: str) -> list[str]:
        return [text[:3], "MILK!", "MILK!"]


def test_chunks_that_a_subclass_rewrites_are_those_of_the_front_end() -> None:
    given = [Given("a", "one two")]
    chunks = TableSplitter(Rewriting(), id_column="key").split_table(table_of(given))
    rows = of_rows(chunks.to_pylist())
    positions = dict.fromkeys(("start_index", "end_index"))
    assert rows == [{**positions, **each} for each in expected(Rewriting(), given)]
    assert chunks.column("start_index").to_pylist() == [0, None, None]
    assert len(set(chunks.column("chunk_id").to_pylist())) == 3
    assert len({chunk.id for chunk in Rewriting().chunk("one two")}) == 3


def test_chunks_that_repeat_rewritten_text_have_the_ids_of_the_front_end() -> None:
    titled = TitledChunker(chunker=RecursiveChunker(chunk_size=400), title="T")
    stages = (titled, RecursiveChunker(chunk_size=18))
    given = [Given("a", "ha ha ha. " * 100), Given(None, "ha ha ha. " * 100)]
    chunks = TableSplitter(HybridChunker(stages=stages), id_column="key")
    rows = of_rows(chunks.split_table(table_of(given)).to_pylist())
    assert rows == expected(rag_splitters.langchain.HybridTextSplitter(stages=stages), given)
    assert len({row["id"] for row in rows}) == len(rows)


def test_pages_are_numbered_from_the_document_s_first() -> None:
    given = table_of([Given("a", "one\ftwo", page=4)])
    assert TableSplitter(PageChunker()).split_table(given).column("page_end").to_pylist() == [5, 6]


def test_llama_index_gives_the_same_ids() -> None:
    from llama_index.core import Document

    known = [
        Document(text=each.text or "", id_=each.key, metadata=each.document.metadata)
        for each in DOCUMENTS
        if each.key
    ]
    nodes = rag_splitters.llama_index.SentenceNodeParser(
        chunk_size=12, length_function="characters", count_metadata=False
    )(known)
    given = table_of([each for each in DOCUMENTS if each.key])
    chunks = TableSplitter(SENTENCES, id_column="key").split_table(given)
    assert chunks.column("chunk_id").to_pylist() == [node.node_id for node in nodes]


def test_ids_without_an_id_column_come_from_text_and_metadata() -> None:
    given = table_of(DOCUMENTS).drop_columns("key")
    chunks = TableSplitter(SENTENCES).split_table(given)
    without = [each._replace(key=None) for each in DOCUMENTS]
    splitter = rag_splitters.langchain.SentenceTextSplitter(chunk_size=12)
    assert of_rows(chunks.to_pylist()) == expected(splitter, without)
    other = TableSplitter(SENTENCES, metadata_columns=["page"]).split_table(given)
    assert set(other.column("chunk_id").to_pylist()).isdisjoint(
        chunks.column("chunk_id").to_pylist()
    )


# Columns


def test_chunks_have_the_same_columns_whatever_the_strategy() -> None:
    given = table_of(DOCUMENTS)
    chunkers = [chunker for cases in CASES.values() for chunker in cases]
    schemas = {TableSplitter(chunker).output_schema(given.schema) for chunker in chunkers}
    assert len(schemas) == 1
    assert schemas.pop().names == [*CHUNKS, "key", "title", "page"]


@pytest.mark.parametrize(
    "given",
    [
        table_of([]),
        table_of([]).slice(0, 0),
        pa.chunked_array([], pa.string()),
        table_of([Given("a", None), Given("b", " \n")]),
        pa.table({"text": pa.nulls(3), "title": ["a", "b", "c"]}),
    ],
    ids=["empty", "slice", "no chunk", "blank", "nulls"],
)
def test_table_without_text_gives_no_chunks_and_all_columns(given: Any) -> None:
    given = given if isinstance(given, pa.Table) else pa.table({"text": given})
    splitting = TableSplitter(SENTENCES)
    chunks = splitting.split_table(given)
    assert (chunks.num_rows, chunks.schema) == (0, splitting.output_schema(given.schema))
    assert [batch.num_rows for batch in splitting.split_batches(given)] == [0]


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
    ids=str,
)
def test_strings_of_every_arrow_type_are_read(kind: pa.DataType) -> None:
    texts = pa.array(["One. Two three four.", None, "Five."], getattr(kind, "value_type", kind))
    texts = texts.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else texts
    given = pa.table({"text": texts, "key": texts, "kept": texts})
    chunks = TableSplitter(SENTENCES, id_column="key").split_table(given)
    assert chunks.column("text").to_pylist() == ["One.", "Two three", "four.", "Five."]
    assert chunks.column("document_id").to_pylist()[-1] == "Five."
    assert chunks.column("kept").to_pylist()[0] == "One. Two three four."
    assert chunks.schema.field("kept").type in (kind, pa.string())


def test_columns_of_every_kind_are_carried_on() -> None:
    import datetime
    import decimal

    when = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
    kept = {
        "vector": pa.array([[1.0, 2.0], None]),
        "when": pa.array([when, None]),
        "price": pa.array([decimal.Decimal("1.50"), None]),
        "raw": pa.array([b"\xff", None]),
        "view": pa.array([b"\xff", None], pa.binary_view()),
        "pair": pa.array([{"a": [1]}, None]),
        "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        "is.it": pa.array([True, None]),
        "nothing": pa.nulls(2),
    }
    given = pa.table({"text": ["One. Two.", "Three."], **kept})
    chunks = TableSplitter(SeparatorChunker(separators=[" "])).split_table(given)
    assert chunks.num_rows == 3
    for name, values in kept.items():
        first, second = values.to_pylist()
        assert chunks.column(name).to_pylist() == [first, first, second]


def test_metadata_columns_are_those_that_are_named_in_that_order() -> None:
    given = table_of(DOCUMENTS)
    for names in ([], ["page"], ["title", "key"]):
        splitting = TableSplitter(SENTENCES, metadata_columns=names)
        assert splitting.split_table(given).column_names == [*CHUNKS, *names]


def test_tree_has_parents_and_levels_in_columns() -> None:
    text = "# Tea\n\nBoil water.\n\n# Milk\n\nIf you like."
    chunks = TableSplitter(HierarchicalChunker(emit="all"), id_column="key").split_table(
        table_of([Given("a", "Plain."), Given("b", text)])
    )
    rows = chunks.to_pylist()[1:]
    assert [row["level"] for row in rows] == [0, 2, 2]
    assert [row["parent_id"] for row in rows] == [None, rows[0]["chunk_id"], rows[0]["chunk_id"]]
    assert rows[2]["headings"] == ["Milk"]
    assert {row["chunk_metadata"] for row in rows} == {"{}"}


class Knowing(Chunker):
    """A strategy of a user's own that knows what it is told."""

    known: dict[str, Any]

    def spans(self, text: str) -> list[Span]:
        return [Span(0, len(text), self.known)] if text.strip() else []


def test_metadata_are_written_as_json_that_keeps_everything() -> None:
    known = {"n": 1, "x": 0.5, "deep": {"a": [True, None, "東京"]}, "odd": "\ud800", "level": 2}
    (row,) = (
        TableSplitter(Knowing(known=known)).split_table(table_of([Given("a", "x")])).to_pylist()
    )
    assert row["level"] == 2
    assert json.loads(row["chunk_metadata"]) == {k: v for k, v in known.items() if k != "level"}
    (row,) = (
        TableSplitter(Knowing(known={"place": "東京"}))
        .split_table(table_of([Given("a", "x")]))
        .to_pylist()
    )
    assert row["chunk_metadata"] == '{"place": "東京"}'


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"when": object()}, "document 'a' could not be split: TypeError"),
        ({"share": float("nan")}, "document 'a' could not be split: ValueError"),
        ({"level": "top"}, "the metadata 'level' of chunks must be int64"),
        ({"headings": "Tea"}, "the metadata 'headings' of chunks must be list<item: string>"),
    ],
    ids=["object", "nan", "level", "headings"],
)
def test_metadata_that_cannot_be_written_are_an_error(known: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match="^" + message):
        TableSplitter(Knowing(known=known), id_column="key").split_table(
            table_of([Given("a", "x")])
        )


def surrogate(prompt: str) -> str:
    """A chat model that answers with half a character."""
    return "about \ud83d"


def test_lone_surrogates_of_a_model_are_replaced() -> None:
    chunker = ContextualChunker(llm=surrogate)
    chunks = TableSplitter(chunker).split_table(table_of([Given("a", "Tea.")]))
    (row,) = chunks.to_pylist()
    assert row["text"] == "about \ufffd\n\nTea."
    assert json.loads(row["chunk_metadata"]) == {"context": "about \ud83d"}
    assert (row["start_index"], row["end_index"]) == (0, 4)


# What is refused


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        ({"body": ["a"]}, {}, ValueError, "the table has no column 'text'; it has ['body']"),
        ({"text": ["a"]}, {"id_column": "id"}, ValueError, "no column 'id'"),
        ({"text": ["a"]}, {"metadata_columns": ["x"]}, ValueError, "no column 'x'"),
        ({"text": [1]}, {}, TypeError, "column 'text' must hold strings, but its type is int64"),
        ({"text": [b"a"]}, {}, TypeError, "its type is binary: cast it first"),
        (
            {"text": ["a"], "id": [1.5]},
            {"id_column": "id"},
            TypeError,
            "column 'id' must hold strings or whole numbers, but its type is double",
        ),
        (
            {"text": ["a"], "headings": ["b"]},
            {},
            ValueError,
            "chunks have their own columns ['headings'",
        ),
        (
            {"body": ["a"], "Text": ["b"]},
            {"text_column": "body"},
            ValueError,
            "rename these columns of the doc",
        ),
        (
            {"text": ["a"], "tags": pa.array([["b"]], pa.list_(pa.string_view()))},
            {},
            TypeError,
            "column 'tags' must hold values of a type that Arrow can repeat",
        ),
    ],
)
def test_table_that_cannot_be_split_is_refused(
    given: dict[str, Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    splitting = TableSplitter(SENTENCES, **options)
    for ask in (splitting.split_table, lambda t: splitting.output_schema(t.schema)):
        with pytest.raises(error) as raised:
            ask(pa.table(given))
        assert message in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.record_batch({"text": ["a"]}), "expected a pyarrow.Table"),
        (
            pa.table({"text": ["a"], "until": pa.array([2**58], pa.timestamp("us"))}),
            "column 'until' holds a value that Python cannot hold",
        ),
    ],
)
def test_values_that_cannot_be_read_are_refused(given: Any, message: str) -> None:
    with pytest.raises(RagSplittersError, match=message):
        TableSplitter(SENTENCES).split_table(given)


def test_column_that_is_there_twice_is_refused() -> None:
    given = pa.Table.from_arrays([pa.array(["a"])] * 3, ["text", "x", "x"])
    with pytest.raises(ValueError, match="the table has 2 columns 'x': rename all but one"):
        TableSplitter(SENTENCES).split_table(given)
    assert TableSplitter(SENTENCES, metadata_columns=[]).split_table(given).num_rows == 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"chunker": len}, TypeError, "chunker must be a Chunker, got an object of type builtin"),
        ({"metadata_columns": "page"}, ValueError, "must be a list of names, got 'page'"),
        ({"id_column": "text"}, ValueError, "must differ, got 'text' twice"),
        ({"batch_size": 0}, ValueError, "batch_size must be a whole number of at least 1, got 0"),
        (
            {"chunker": rag_splitters.llama_index.SentenceNodeParser(id_func=lambda i, _: str(i))},
            ValueError,
            "id_func cannot be used with tables",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        TableSplitter(**{"chunker": SENTENCES, **options})
    assert message in str(raised.value)


def test_missing_pyarrow_is_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    given = table_of(DOCUMENTS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install .*\[ray\]"):
        TableSplitter(SENTENCES).split_table(given)


# Errors of strategies


@pytest.mark.parametrize("key", ["report-7", None])
def test_error_names_the_document(key: str | None) -> None:
    given = table_of([Given("fine", "All is well."), Given(key, "And then boom.")])
    chunker = RecursiveChunker(chunk_size=5, length_function=fail_on_boom)
    with pytest.raises(ValueError, match="could not be split") as raised:
        TableSplitter(chunker, id_column="key").split_table(given)
    name = "'report-7'" if key else "(no id) 'And then boom.'"
    wanted = f"document {name} could not be split: RuntimeError: it went boom"
    assert str(raised.value) == wanted
    assert isinstance(raised.value.__cause__, RuntimeError)


def no_names(text: str) -> list[tuple[int, int, str]]:
    """An entity recogniser that one document breaks."""
    return [(0, fail_on_boom(text), "ALL")]


def refuse_boom(prompt: str) -> str:
    """A chat model that one document breaks."""
    return str(min(fail_on_boom(prompt), 1))


def embed_nothing(texts: list[str]) -> list[list[float]]:
    """An embedding model that is out of order."""
    raise RuntimeError("no vectors today")


@pytest.mark.parametrize(
    "chunker",
    [
        PageChunker(chunk_size=5, length_function=fail_on_boom),
        EntityChunker(ner=no_names),
        AgenticChunker(llm=refuse_boom, chunk_size=20),
    ],
    ids=lambda chunker: type(chunker).__name__,
)
def test_error_of_a_strategy_that_takes_all_texts_names_the_document(chunker: Chunker) -> None:
    fine = [Given(f"fine-{number}", "All is well. It is.") for number in range(5)]
    given = table_of([*fine[:3], Given("bad", "One more. And then boom."), *fine[3:]])
    with pytest.raises(ValueError, match="'bad'") as raised:
        TableSplitter(chunker, id_column="key").split_table(given)
    assert "boom" in str(raised.value)
    assert "fine-" not in str(raised.value)


def test_error_of_a_call_for_many_documents_names_the_first_and_counts_the_others() -> None:
    given = table_of([Given(f"d{number}", f"{number} came. {RAIN}") for number in range(9)])
    chunker = SemanticChunker(embeddings=embed_nothing, chunk_size=5)
    with pytest.raises(ValueError, match="no vectors today") as raised:
        TableSplitter(chunker, id_column="key", batch_size=6).split_table(given)
    assert str(raised.value).startswith("document 'd0' could not be split: ModelError")
    assert "and 5 more failed" in str(raised.value)


# Memory, processes, models


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the chunks hold, and by the columns that each of them repeats."""
    monkeypatch.setattr(splitter, "_MAX_BYTES", 10_000)
    heavy = "x" * 1000
    text = "word " * 4000
    given = pa.table({"text": [text, "", text], "heavy": [heavy, None, "y"]})
    splitting = TableSplitter(TokenChunker(chunk_size=50, chunk_overlap=0), batch_size=2)
    batches = list(splitting.split_batches(given))
    assert all(batch.nbytes < 25_000 for batch in batches)
    assert len(batches) > 10
    assert all(batch.num_rows for batch in batches)
    chunks = pa.Table.from_batches(batches)
    assert chunks == splitting.split_table(given)
    assert "".join(chunks.column("text").to_pylist()).count("word") == 8000


def test_batches_are_made_one_at_a_time() -> None:
    given = table_of([Given("a", "Fine."), Given("b", "boom")])
    chunker = SentenceChunker(chunk_size=5, length_function=fail_on_boom)
    batches = TableSplitter(chunker, id_column="key", batch_size=1).split_batches(given)
    assert next(batches).column("text").to_pylist() == ["Fine."]
    with pytest.raises(ValueError, match="document 'b'"):
        next(batches)


@pytest.mark.parametrize(("batch_size", "calls"), [(1, 8), (3, 3), (100, 1)])
def test_model_is_called_once_for_a_batch(tmp_path: Any, batch_size: int, calls: int) -> None:
    model = NotedEmbeddings(tmp_path)
    chunker = SemanticChunker(embeddings=model, chunk_size=30)
    given = table_of([Given(f"d{n}", f"{n} came. {RAIN}") for n in range(8)])
    splitting = TableSplitter(chunker, id_column="key", batch_size=batch_size)
    chunks = splitting.split_table(given)
    assert len(model.noted("calls")) == calls
    other = TableSplitter(chunker, id_column="key").split_table(given)
    assert chunks.equals(other)


def test_splitter_is_unpickled_once_in_a_process(tmp_path: Any) -> None:
    splitting = TableSplitter(SemanticChunker(embeddings=NotedEmbeddings(tmp_path)))
    payload = pickle.dumps(splitting)
    (tmp_path / "loads").unlink()  # of the copy that is compared with the model
    again = [columns.load(bytes(bytearray(payload))) for _ in range(3)]
    assert again[0] is again[1] is again[2]
    assert NotedEmbeddings(tmp_path).noted("loads") == [str(os.getpid())]


@pytest.mark.parametrize("strategy", CASES)
def test_splitter_survives_pickling(strategy: str) -> None:
    splitting = TableSplitter(CASES[strategy][-1], id_column="key", metadata_columns=["page"])
    again = pickle.loads(pickle.dumps(splitting))
    given = table_of(DOCUMENTS[:3])
    assert again.split_table(given).equals(splitting.split_table(given))
