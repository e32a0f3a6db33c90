"""What a user reads about a wrong parameter: our own words, for every class, wherever it occurs."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from chromadb.api.async_client import AsyncClient
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import NodeWithScore, TextNode

import rag_splitters.langchain
import rag_splitters.llama_index
from rag_splitters import (
    CATALOGUE,
    AgenticChunker,
    ContentAwareChunker,
    ContextualChunker,
    HierarchicalChunker,
    HybridChunker,
    ModalityChunker,
    PropositionChunker,
    RagSplittersError,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
    SentenceWindowChunker,
    SizedChunker,
    Span,
    TitledChunker,
    TopicChunker,
)
from rag_splitters.chunkers.by_name import build_chunker
from rag_splitters.citations import cite, quoted
from rag_splitters.distributed.splitter import TableSplitter
from rag_splitters.errors import InputTypeError
from rag_splitters.evaluation import Question, compare
from rag_splitters.evaluation.judge import generate_facts
from rag_splitters.langchain import RecursiveTextSplitter
from rag_splitters.langchain import parent_document_retriever as open_by_langchain
from rag_splitters.llama_index import RecursiveNodeParser
from rag_splitters.llama_index import parent_document_retriever as open_by_llama_index
from rag_splitters.models import HashingEmbeddings
from rag_splitters.parameters.messages import describe_value
from rag_splitters.testing import check_chunker
from tests.support.forms import classes, required

every_strategy = pytest.mark.parametrize("name", CATALOGUE)

OBJECT = object()
TEA = LangChainDocument(page_content="Tea.")
FOREIGN = ("pydantic", "validation error", "Input should", "Value error", "[type=", "permitted")


def message_of(function: Callable[[], Any]) -> str:
    """The message of our own ValueError that the function raises."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the callers check the message)
        function()
    assert isinstance(caught.value, RagSplittersError)
    message = str(caught.value)
    assert "\n" not in message
    assert not any(word in message for word in FOREIGN)
    return message


def messages(kind: Any, parameters: dict[str, Any]) -> list[str]:
    """The message from each way to construct a chunker."""
    ways = [lambda: kind(**parameters), lambda: kind.model_validate(parameters)]
    if hasattr(kind, "from_dict"):
        ways.append(lambda: kind.from_dict(parameters))
    return [message_of(way) for way in ways]


@every_strategy
def test_unknown_parameter_names_the_nearest_one(name: str) -> None:
    for kind in classes(name):
        for field in kind.model_fields:
            for message in messages(kind, {**required(name), f"{field}x": 1}):
                start = f"{kind.__name__} got an unknown parameter '{field}x': did you mean "
                assert message == f"{start}{field!r}?"
        for message in messages(kind, {**required(name), "qqqqq": 1}):
            names = ", ".join(kind.model_fields)
            assert (
                message
                == f"{kind.__name__} got an unknown parameter 'qqqqq': its parameters are {names}"
            )


@every_strategy
def test_wrong_type_names_the_parameter(name: str) -> None:
    for kind in classes(name):
        names = set(kind.model_fields) - {"callback_manager"}  # which is LlamaIndex's own
        for field in names & set(CATALOGUE_FIELDS):
            for message in messages(kind, {**required(name), field: OBJECT}):
                assert field in message, message
                assert "must be" in message, message


CATALOGUE_FIELDS = {field for kind in CATALOGUE.values() for field in kind.model_fields}


@every_strategy
def test_wrong_range_names_the_parameter_and_the_value(name: str) -> None:
    for kind in classes(name):
        for field in {"chunk_size", "rows_per_chunk", "window"} & set(kind.model_fields):
            for message in messages(kind, {**required(name), field: -7}):
                assert message.startswith(f"{field} must be ")
                assert message.endswith("got -7")


@every_strategy
def test_text_that_is_no_string_is_an_error(name: str) -> None:
    for kind in classes(name):
        for value, shown in ((None, "NoneType: None"), (b"text", "bytes: b'text'")):
            with pytest.raises(TypeError, match=f"the text must be a string, got {shown}"):
                kind(**required(name)).chunk(value)


@every_strategy
def test_missing_parameter_is_named(name: str) -> None:
    for kind in classes(name):
        for field in kind.model_fields:
            if kind.model_fields[field].is_required():
                for message in messages(kind, {}):
                    assert message == f"{kind.__name__} needs the parameter {field!r}"


NESTED = 'a chunker or {"strategy": name, ...}'


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (SentenceChunker, {"chunk_size": "x"}, "chunk_size must be a whole number of at least 1"),
        (SentenceChunker, {"overlap_sentences": "x"}, "overlap_sentences must be a whole number"),
        (SentenceChunker, {"overlap_sentences": -1}, "overlap_sentences must be at least 0"),
        (SentenceChunker, {"overlap_sentences": "x" * 300}, f"'{'x' * 199}..."),
        (SentenceChunker, {"segmenter": 3}, "segmenter must be a string or a function, got 3"),
        (SentenceChunker, {"chunk_overlap": 1.5}, "chunk_overlap must be a share in [0, 1) or a"),
        (SentenceChunker, {"chunk_overlap": 1000}, "chunk_overlap must be smaller than chunk_size"),
        (SentenceChunker, {"segmenter": "words"}, "segmenter must be"),
        (SentenceWindowChunker, {"window_size": -1}, "window_size must be at least 0, got -1"),
        (TopicChunker, {"n_topics": 1}, "n_topics must be at least 2 or 'auto', got 1"),
        (TopicChunker, {"n_topics": 2.5}, "n_topics must be a whole number or 'auto', got 2.5"),
        (TopicChunker, {"n_topics": "many"}, "n_topics must be a whole number or 'auto', got"),
        (TopicChunker, {"model": "lsa"}, "model must be 'nmf' or 'lda', got 'lsa'"),
        (TopicChunker, {"random_state": -1}, "random_state must be at least 0"),
        (TopicChunker, {"chunk_size": 10, "min_chunk_size": 11}, "must not be larger than chunk_s"),
        (ContentAwareChunker, {"chunk_size": 20, "min_chunk_size": 30}, "chunk_size (20), got 30"),
        (RecursiveChunker, {"separators": "ab"}, "separators must be a list, got 'ab'"),
        (RecursiveChunker, {"separators": 3}, "separators must be a list, got 3"),
        (RecursiveChunker, {"separators": ["a", 1]}, "separators[1] must be a string, got 1"),
        (RecursiveChunker, {"is_regex": "x"}, "is_regex must be True or False, got 'x'"),
        (RecursiveChunker, {"chunk_sise": 1, "is_regex": 3}, "'chunk_size'?"),
        (RecursiveChunker, {"chunk_sise": 1, "is_regex": 3}, "is_regex must be True or False"),
        (ModalityChunker, {"text": 3}, f"text must be {NESTED} or 'keep' or 'drop', got 3"),
        (HybridChunker, {"stages": ["page", 3]}, f"stages[0] must be {NESTED}, got 'page'"),
        (HybridChunker, {"stages": ["page", 3]}, f"stages[1] must be {NESTED}, got 3"),
        (ModalityChunker, {"code": None}, "code must be"),
        (ModalityChunker, {"chunk_size": 10, "chunk_overlap": 20}, "must be smaller than chunk_si"),
        (
            ModalityChunker,
            {"chunk_size": 10, "text": {"strategy": "recursive", "chunk_overlap": 20}},
            "chunk_overlap must be smaller than chunk_size",
        ),
        (HierarchicalChunker, {"chunk_sizes": ()}, "chunk_sizes must decrease from level to level"),
        (HierarchicalChunker, {"chunk_sizes": (10, 20)}, "chunk_sizes must decrease from level to"),
        (
            HierarchicalChunker,
            {"chunk_sizes": (20, 10), "chunk_size": 5},
            "chunk_size must be the last of chunk_sizes (10)",
        ),
        (
            HierarchicalChunker,
            {"chunk_sizes": (20, 10), "chunk_overlap": 10},
            "chunk_overlap must be smaller than chunk_size",
        ),
        (HierarchicalChunker, {"chunk_sizes": (20, 0)}, "chunk_size must be a whole number"),
        (HierarchicalChunker, {"section_keywords": (" ",)}, "section_keywords must not be blank"),
        (SemanticChunker, {"min_chunk_size": 1001}, "must not be larger than chunk_size (1000)"),
        (SemanticChunker, {"min_chunk_size": 1.5}, "min_chunk_size must be a share in [0, 1]"),
        (SemanticChunker, {"embeddings": 3}, "embeddings must be a LangChain Embeddings"),
        (SemanticChunker, {"buffer_size": -1}, "buffer_size"),
        (SemanticChunker, {"breakpoint_threshold_type": "median"}, "breakpoint_threshold_type"),
        (
            SemanticChunker,
            {"breakpoint_threshold_amount": 101},
            "must be a percentile from 0 to 100, got",
        ),
        (SemanticChunker, {"number_of_chunks": 2, "breakpoint_threshold_amount": 90}, "not both"),
        (
            AgenticChunker,
            {"on_error": "retry"},
            f"on_error must be 'raise' or 'skip' or {NESTED}, got",
        ),
        (AgenticChunker, {"prompt": "Where?"}, "must contain {sentences}"),
        (AgenticChunker, {"window": 1}, "window must be at least 2, got 1"),
        (AgenticChunker, {"llm": "gpt"}, "pass the model again"),
        (AgenticChunker, {"max_retries": -1}, "max_retries must be at least 0, got -1"),
        (PropositionChunker, {"prompt": "What?"}, "must contain {sentences}"),
        (PropositionChunker, {"chunk_overlap": 10}, "takes no chunk_overlap"),
        (PropositionChunker, {"on_error": "ignore"}, "'keep'"),
        (ContextualChunker, {"prompt": "{chunk}"}, "must contain {document}"),
        (ContextualChunker, {"cache": "folder"}, "got a string: pass Path('folder')"),
        (
            ContextualChunker,
            {"cache": Path("folder"), "llm": lambda prompt: "Context."},
            "cannot be written to a configuration or a cache key",
        ),
        (ContextualChunker, {"document_window": 0}, "document_window must be at least 1, got 0"),
        (ContextualChunker, {"max_concurrency": 0}, "max_concurrency must be at least 1, got 0"),
        (ContextualChunker, {"on_error": "ignore"}, "'plain'"),
    ],
)
def test_message(kind: Any, parameters: dict[str, Any], message: str) -> None:
    for each in messages(kind, {**required(kind.strategy), **parameters}):
        assert message in each


def test_message_of_the_other_ways_to_construct() -> None:
    message = message_of(lambda: RecursiveChunker.model_validate(3))
    assert message == "RecursiveChunker must be a dictionary of parameters, got 3"
    written = json.dumps({"chunk_size": 0})
    message = message_of(lambda: RecursiveChunker.model_validate_json(written))
    assert message == "chunk_size must be a whole number of at least 1, got 0"
    message = message_of(lambda: build_chunker("page", {"page_brake": 1}))
    assert message == "page got an unknown parameter 'page_brake': did you mean 'page_break'?"


@pytest.mark.parametrize("kind", classes("titled"))
def test_error_in_a_nested_strategy_says_where(kind: Any) -> None:
    inner = {"strategy": "recursive", "chunksize": 5}
    for message in messages(kind, {"chunker": inner}):
        assert message == (
            "chunker: RecursiveChunker got an unknown parameter 'chunksize': did you mean "
            "'chunk_size'?"
        )
    for message in messages(kind, {"chunker": {"strategy": "hybrid", "stages": [inner]}}):
        assert message.startswith("chunker: stages[0]: RecursiveChunker got an unknown parameter")
    for message in messages(kind, {"chunker": {"strategy": "modality", "code": inner}}):
        assert message.startswith("chunker: code: RecursiveChunker got an unknown parameter")
    for message in messages(kind, {"chunker": {"strategy": "recursiv"}}):
        assert message.startswith("chunker: unknown strategy 'recursiv': did you mean 'recursive'?")


def test_core_chunker_cannot_be_changed() -> None:
    chunker = RecursiveChunker(chunk_size=9)
    for name in ("chunk_size", "chunksize"):
        message = message_of(lambda name=name: setattr(chunker, name, 3))
        assert message == f"RecursiveChunker cannot be changed: create a new one with {name}="
    with pytest.raises(ValueError, match="frozen"):
        del chunker.chunk_size
    assert chunker.chunk_size == 9


def test_core_chunker_takes_parameters_by_name() -> None:
    with pytest.raises(TypeError, match="takes its parameters by name, got 2 by position"):
        RecursiveChunker(3, 4)  # type: ignore[misc]


class Lines(SizedChunker):
    """A strategy whose parameters may be passed by position."""

    positional = ("separator", "chunk_size")
    separator: str = "\n"

    def spans(self, text: str) -> list[Span]:
        return [Span(0, len(text))]


def test_positional_parameters() -> None:
    make: Any = Lines
    assert make(";", 7, chunk_overlap=2) == Lines(separator=";", chunk_size=7, chunk_overlap=2)
    with pytest.raises(TypeError, match="Lines takes only separator, chunk_size by position"):
        make(";", 7, 2)
    with pytest.raises(TypeError, match="Lines got separator twice"):
        make(";", separator=",")
    assert message_of(lambda: make(";", 0)).startswith("chunk_size must be a whole number")


def test_signature_is_clean() -> None:
    assert str(inspect.signature(Lines)).startswith(
        r"(separator: str = '\n', chunk_size: int = 1000, *, chunk_overlap: int | float = 0, "
    )
    for kind in (kind for name in CATALOGUE for kind in classes(name)):
        signature = str(inspect.signature(kind))
        assert "Annotated" not in signature
        assert "args" not in signature
        assert "**" not in signature
        names = dict.fromkeys([*kind.positional, *kind.model_fields])
        assert list(inspect.signature(kind).parameters) == list(names)


def test_error_has_no_chain_that_shows_pydantic() -> None:
    with pytest.raises(ValueError, match="chunk_size") as caught:
        TitledChunker(chunker={"strategy": "recursive", "chunk_size": 0})
    assert caught.value.__suppress_context__


# The retrievers and their factories


UNKNOWN = "parent_document_retriever got an unknown parameter"
FACTORY_ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("langchain", {"k": "x"}, "k must be a whole number of at least 1, got 'x'"),
    ("langchain", {"search_type": "x"}, "search_type must be 'similarity', 'similarity_score_thr"),
    ("langchain", {"child_splitter": 3}, "child_splitter must be an object of type TextSplitter, "),
    ("langchain", {"smoothing": -1}, "smoothing must be at least 0.0, got -1"),
    ("langchain", {"lambda_mult": -0.1}, "lambda_mult must be at least 0.0, got -0.1"),
    ("langchain", {"search_kwargs": 3}, "search_kwargs must be a dictionary, got 3"),
    ("langchain", {"child_spliter": 3}, f"{UNKNOWN} 'child_spliter': did you mean 'child_spl"),
    ("langchain", {"embed_model": 3}, f"{UNKNOWN} 'embed_model': did you mean 'embeddings'?"),
    ("langchain", {"similarity_top_k": 3}, f"{UNKNOWN} 'similarity_top_k': did you mean 'k'?"),
    ("llama_index", {"similarity_top_k": "x"}, "similarity_top_k must be a whole number of at lea"),
    ("llama_index", {"mmr_threshold": 2}, "mmr_threshold must be at most 1.0, got 2"),
    ("llama_index", {"mmr_threshold": float("nan")}, "mmr_threshold must be "),
    ("llama_index", {"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
    ("llama_index", {"merged_sise": 3}, f"{UNKNOWN} 'merged_sise': "),
    ("llama_index", {"pathh": 3}, f"{UNKNOWN} 'pathh': did you mean "),
    ("llama_index", {"embeddings": 3}, f"{UNKNOWN} 'embeddings': did you mean 'embed_model'?"),
    ("llama_index", {"k": 3}, f"{UNKNOWN} 'k': did you mean 'similarity_top_k'?"),
    ("llama_index", {"retrieve": "all"}, "retrieve must be 'passages', 'parents' or 'children', "),
    ("llama_index", {"search_type": "bm25"}, "search_type must be 'similarity'"),
    ("llama_index", {"smoothing": 11}, "smoothing must be at most 10.0, got 11"),
    ("llama_index", {"write_timeout": -1}, "write_timeout must be at least 0.0, got -1"),
    ("llama_index", {"write_timeout": float("nan")}, "write_timeout must be a finite number, "),
    ("llama_index", {"id_key": ""}, "id_key must not be empty"),
    ("llama_index", {"max_tokens": 0}, "max_tokens must be a whole number of at least 1, got 0"),
    ("llama_index", {"rerank_k": 0}, "rerank_k must be a whole number of at least 1, got 0"),
]


@pytest.mark.parametrize(("framework", "options", "message"), FACTORY_ERRORS)
def test_errors_of_the_factories(framework: str, options: dict[str, Any], message: str) -> None:
    factory = getattr(rag_splitters, framework).parent_document_retriever
    assert message_of(lambda: factory(**options)).startswith(message)


@pytest.mark.parametrize(
    ("framework", "name"), [("langchain", "embeddings"), ("llama_index", "embed_model")]
)
def test_a_factory_names_the_model_as_its_framework_does(framework: str, name: str) -> None:
    factory = getattr(rag_splitters, framework).parent_document_retriever
    with pytest.raises(InputTypeError, match=f"^{name} must be a LangChain Embeddings, .* got 3$"):
        factory(**{name: 3})


@pytest.mark.parametrize("client", ["http://localhost:8000", AsyncClient.__new__(AsyncClient)])
@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_a_client_that_cannot_be_used_is_named(framework: str, client: Any) -> None:
    factory = getattr(rag_splitters, framework).parent_document_retriever
    with pytest.raises(InputTypeError, match=r"^client must be .* as chromadb.HttpClient\("):
        factory(client=client)


def test_errors_of_the_retrievers() -> None:
    start = "ParentDocumentRetriever got an unknown parameter 'childsplitter': did you mean "
    message = message_of(lambda: rag_splitters.langchain.ParentDocumentRetriever(childsplitter=1))
    assert start in message
    assert "ParentDocumentRetriever needs the parameter 'vectorstore'" in message
    start = "ParentDocumentRetriever got an unknown parameter 'childparser': did you mean 'child_p"
    retriever: Any = rag_splitters.llama_index.ParentDocumentRetriever
    assert message_of(lambda: retriever(childparser=1)).startswith(start)


LANGCHAIN = 'a LangChain Document, such as Document(page_content="...")'
LLAMA_INDEX = 'a LlamaIndex Document or node, such as Document(text="...")'
READING: list[tuple[Callable[[], Any], str]] = [
    (lambda: RecursiveTextSplitter().split_documents, LANGCHAIN),
    (lambda: open_by_langchain().add_documents, LANGCHAIN),
    (lambda: open_by_langchain().sync, LANGCHAIN),
    (lambda: RecursiveNodeParser().get_nodes_from_documents, LLAMA_INDEX),
    (lambda: RecursiveNodeParser().aget_nodes_from_documents, LLAMA_INDEX),
    (lambda: open_by_llama_index().add_documents, LLAMA_INDEX),
]


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


@pytest.mark.parametrize(("method", "kind"), READING)
async def test_what_is_no_list_of_documents_is_named(method: Any, kind: str) -> None:
    for value in ("a text", None, Path("tea.md"), TEA):
        with pytest.raises(
            InputTypeError, match=re.escape(f"list of documents, got {describe_value(value)}")
        ):
            await _result(method()(value))
    for value in ("a text", NodeWithScore(node=TextNode(text="Tea."))):
        with pytest.raises(InputTypeError) as caught:
            await _result(method()([value]))
        assert str(caught.value) == f"expected {kind}, got {describe_value(value)}"


class Gateway:
    """An object that shows its key."""

    def __repr__(self) -> str:
        return "Gateway(api_key='sk-very-secret-123')"


@pytest.mark.parametrize(
    "call",
    [
        lambda value: RecursiveTextSplitter().split_documents([value]),
        lambda value: RecursiveTextSplitter().split_documents(value),
        lambda value: RecursiveTextSplitter().create_documents(["a"], [value]),
        lambda value: check_chunker(value, "a text"),
        lambda value: TableSplitter(value),
    ],
)
def test_no_message_shows_an_object_or_a_long_value(call: Callable[[Any], Any]) -> None:
    for value in (Gateway(), [Gateway()], {"a": Gateway()}):
        assert "very-secret" not in message_of(lambda value=value: RecursiveChunker(language=value))
    with pytest.raises(InputTypeError, match=r"an object of type Gateway$"):
        call(Gateway())
    with pytest.raises(InputTypeError) as caught:
        call("x" * 100_000)
    assert len(str(caught.value)) < 400


CHUNKER = RecursiveChunker()
BY_NAME = "expected texts by name, such as {\"a.md\": text}, got ['tea']"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: RecursiveTextSplitter().create_documents("tea"),
            "expected a list of texts, got 'tea'",
        ),
        (
            lambda: list(CHUNKER.split("tea")),
            "expected a list of sources (for one text, call chunk), got 'tea'",
        ),
        (
            lambda: list(SemanticChunker(embeddings=HashingEmbeddings()).split(["tea"])),
            "expected a Source (for one text, call chunk), got 'tea'",
        ),
        (
            lambda: rag_splitters.show(CHUNKER, "tea"),
            "expected a chunker after the text, got 'tea'",
        ),
        (lambda: CHUNKER.chunk("tea", id=3), "the id of a text must be a string, got 3"),
        (
            lambda: CHUNKER.chunk_stream("tea", id="a"),
            "expected a file that is open for reading text, got 'tea'",
        ),
        (lambda: CHUNKER.chunk_stream(StringIO("tea"), id=3), "expected id as a string, got 3"),
        (
            lambda: SentenceChunker(segmenter=str.split).chunk("Tea. Hot."),
            "the segmenter <method 'split' of 'str' objects> must return (start, end) of each "
            "sentence, got ['Tea.', 'Hot.']",
        ),
        (
            lambda: open_by_llama_index([LlamaIndexDocument(text="Tea.")], reranker="x").retrieve(
                "Tea?"
            ),
            "the reranker must be a function from a question and texts to scores, got 'x'",
        ),
        (
            lambda: open_by_llama_index(
                [LlamaIndexDocument(text="Tea.")], filters={"team": "a"}
            ).retrieve("Tea?"),
            "expected filters as MetadataFilters of LlamaIndex, got {'team': 'a'}",
        ),
        (
            lambda: open_by_langchain().sync([TEA], scope="x"),
            "expected scope as a dictionary, got 'x'",
        ),
        (
            lambda: open_by_langchain([TEA], reranker=lambda question, texts: None).invoke("Tea?"),
            "the reranker must return a number for each text, and returned None",
        ),
        (lambda: open_by_langchain().get(None), "expected a list of ids, got None"),
        (
            lambda: open_by_langchain().delete(["a", None]),
            "delete() needs ids that are strings, got None",
        ),
        (lambda: open_by_langchain().delete(), 'delete() needs ids=[...] or source="..."'),
        (
            lambda: open_by_llama_index(child_parser=TitledChunker),
            "child_parser must be a NodeParser, such as RecursiveNodeParser(), got the class "
            "TitledChunker instead of an object of it",
        ),
        (lambda: compare(CHUNKER, ["tea"]), BY_NAME),
        (lambda: generate_facts(["tea"], str.upper), BY_NAME),
        (lambda: compare(CHUNKER, {"a.md": ["tea"]}), BY_NAME),
        (
            lambda: compare(CHUNKER, {"a.md": "tea"}, [{"question": "What?"}]),
            "expected a Question, got {'question': 'What?'}",
        ),
        (
            lambda: compare(CHUNKER, {"a.md": "Tea."}, [Question("What?", "a.md", (0, 3))]),
            "question 'What?': a reference is its start and end, got 0; read_questions finds "
            "the positions of quotations",
        ),
        (lambda: cite("tea"), "expected a list of results, got 'tea'"),
        (
            lambda: quoted("an answer", ["tea"]),
            "expected a LangChain Document, a LlamaIndex node or a chunk, got 'tea'",
        ),
        (lambda: quoted([], "an answer"), "the answer must be a string, got []"),
        (
            lambda: CHUNKER.chunk("tea", metadata="a.md"),
            "the metadata of a text must be a dictionary, got 'a.md'",
        ),
        (
            lambda: RecursiveTextSplitter().split_documents(
                [LangChainDocument.model_construct(page_content="Tea.", metadata=None)]
            ),
            "the metadata of a text must be a dictionary, got None",
        ),
    ],
)
def test_what_was_passed_in_place_of_something_else_is_named(call, message):
    with pytest.raises(RagSplittersError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(("name", "parameter"), [("Separator", "separators"), ("Hybrid", "stages")])
def test_an_empty_list_is_refused_when_it_is_assigned(name: str, parameter: str) -> None:
    splitter = getattr(rag_splitters.langchain, f"{name}TextSplitter")()
    with pytest.raises(ValueError, match=f"{parameter} must be a list that is not empty"):
        setattr(splitter, parameter, [])
