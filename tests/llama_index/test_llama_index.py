"""The LlamaIndex front end: what its own parsers get wrong, and what a pipeline expects."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, MockEmbedding
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.ingestion import DocstoreStrategy, IngestionCache, IngestionPipeline
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.node_parser import NodeParser, TokenTextSplitter
from llama_index.core.schema import (
    ImageDocument,
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    NodeRelationship,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from tokenizers import Tokenizer, models, pre_tokenizers

from rag_splitters import CATALOGUE, ParagraphChunker, RecursiveChunker, SentenceChunker, register
from rag_splitters.llama_index import (
    AgenticNodeParser,
    EntityNodeParser,
    FixedSizeNodeParser,
    HybridNodeParser,
    ParagraphNodeParser,
    RecursiveNodeParser,
    SemanticNodeParser,
    SentenceNodeParser,
    SlidingWindowNodeParser,
    TitledNodeParser,
)
from rag_splitters.models import HashingEmbeddings
from tests.langchain.test_langchain import PASSAGE, STORY
from tests.support.cases import (
    CASES,
    about_tea,
    every_third,
    letters,
    people_and_places,
    words_in_capitals,
)
from tests.support.forms import front_end, front_end_class, required


def numbered(index: int, document: Any) -> str:
    """An id function that another process can find."""
    return f"{document.node_id}-{index}"


ASKED: list[str] = []


def recorded(text: str) -> int:
    """A length function that records that it was asked."""
    ASKED.append(text)
    return len(text)


def parsers() -> list[Any]:
    """Parsers of every kind, small enough to cut `STORY` into several chunks.

    The one of plain slices, of overlapping windows, of rewritten chunks, and of nested strategies.

    They leave no room for metadata, which would take most of such small chunks.
    """
    made = [
        HybridNodeParser(stages=(ParagraphChunker(), RecursiveChunker(chunk_size=40))),
        RecursiveNodeParser(chunk_size=50, chunk_overlap=10, length_function="characters"),
        SlidingWindowNodeParser(chunk_size=8, chunk_overlap=2, length_function="words"),
        TitledNodeParser(chunker=RecursiveChunker(chunk_size=60)),
    ]
    for parser in made:
        parser.count_metadata = False
    return [pytest.param(parser, id=type(parser).__name__) for parser in made]


every_parser = pytest.mark.parametrize("parser", parsers())


def texts(nodes: Any) -> list[str]:
    return [node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes]


def plain(nodes: Any) -> list[dict[str, Any]]:
    return [node.to_dict() for node in nodes]


# Positions


@every_parser
def test_positions_of_nested_splits_are_those_of_the_source(parser: Any) -> None:
    text = PASSAGE * 3 + STORY + PASSAGE * 3
    document = Document(text=text, id_="one", metadata={"a": 1})
    outer = ParagraphNodeParser(
        chunk_size=200, length_function="characters"
    ).get_nodes_from_documents([document])
    assert len(outer) > 3
    inner = parser.get_nodes_from_documents(outer)
    assert len(inner) > len(outer)
    for node in inner:
        assert node.text.endswith(text[node.start_char_idx : node.end_char_idx])
        assert node.source_node.node_id == node.ref_doc_id == "one"
    covered = {at for node in inner for at in range(node.start_char_idx, node.end_char_idx)}
    assert all(mark.isspace() or at in covered for at, mark in enumerate(text))


# Configuration


@pytest.mark.parametrize("strategy", CATALOGUE)
def test_from_dict_gives_the_parser_back(strategy: str) -> None:
    document = Document(text=STORY, id_="one")
    for chunker in CASES[strategy]:
        parser = front_end(chunker, "llama_index", include_prev_next_rel=False)
        again = type(parser).from_dict(json.loads(json.dumps(parser.to_dict())))
        assert again.to_dict() == type(parser).from_json(parser.to_json()).to_dict()
        assert again.to_dict() == parser.to_dict()
        assert parser.class_name() == parser.to_dict()["class_name"] == type(parser).__name__
        assert isinstance(parser, NodeParser)
        assert "rag_splitters." not in parser.to_json(), "a class has the name of its strategy"
        nodes = again.get_nodes_from_documents([document])
        assert plain(nodes) == plain(parser.get_nodes_from_documents([document]))


@pytest.mark.parametrize(
    "parser",
    [
        RecursiveNodeParser(id_func=numbered),
        RecursiveNodeParser(length_function=letters, chunk_size=9),
        HybridNodeParser(
            stages=(
                ParagraphChunker(),
                TitledNodeParser(chunker=SentenceChunker(length_function=letters, chunk_size=30)),
            ),
            id_func=numbered,
        ),
    ],
)
def test_from_dict_finds_registered_functions(parser: Any) -> None:
    register("numbered", numbered)
    again = type(parser).from_dict(json.loads(json.dumps(parser.to_dict())))
    document = Document(text=STORY, id_="one")
    assert again.id_func is parser.id_func
    assert plain(again([document])) == plain(parser([document]))


def word_tokenizer() -> Tokenizer:
    """A Hugging Face tokenizer whose tokens are words."""
    vocabulary = {"?": 0, "lamp": 1, "the": 2}
    tokenizer = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def test_from_dict_asks_for_a_tokenizer_object() -> None:
    described = RecursiveNodeParser(length_function=word_tokenizer()).to_dict()
    with pytest.raises(ValueError, match="pass it again as length_function="):
        RecursiveNodeParser.from_dict(described)
    again = RecursiveNodeParser.from_dict(described, length_function=word_tokenizer())
    assert again.to_dict() == described


# The cache key


NEUTRAL = {"cache", "callback_manager", "max_concurrency"}
"""Fields that change no chunk."""


def key(parser: Any) -> str:
    return get_transformation_hash([TextNode(text="text", id_="one")], parser)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_parameter_is_written_and_so_in_the_cache_key(name: str) -> None:
    parser = front_end_class(name, "llama_index")(**required(name))
    assert parser.to_dict().keys() >= type(parser).model_fields.keys() - NEUTRAL


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            RecursiveNodeParser(length_function=letters),
            RecursiveNodeParser(length_function=recorded),
        ),
        (
            RecursiveNodeParser(length_function=word_tokenizer()),
            RecursiveNodeParser(
                length_function=Tokenizer(models.WordLevel(vocab={"?": 0}, unk_token="?"))
            ),
        ),
        (
            RecursiveNodeParser(length_function="tokens"),
            RecursiveNodeParser(length_function="tokens:o200k_base"),
        ),
        (
            TitledNodeParser(chunker=RecursiveChunker(chunk_size=5)),
            TitledNodeParser(chunker=SentenceChunker(chunk_size=5)),
        ),
        (
            HybridNodeParser(stages=(ParagraphChunker(), RecursiveChunker())),
            HybridNodeParser(stages=(RecursiveChunker(), ParagraphChunker())),
        ),
        (RecursiveNodeParser(), ParagraphNodeParser()),
        (RecursiveNodeParser(chunk_size=77), RecursiveNodeParser(chunk_size=76)),
        (RecursiveNodeParser(id_func=numbered), RecursiveNodeParser(id_func=recorded)),
        (SentenceNodeParser(segmenter="punkt"), SentenceNodeParser(segmenter="rules")),
        (RecursiveNodeParser(separators=("x",)), RecursiveNodeParser(separators=("y",))),
        (AgenticNodeParser(llm=about_tea), AgenticNodeParser(llm=every_third)),
        (
            SemanticNodeParser(embeddings=HashingEmbeddings()),
            SemanticNodeParser(embeddings=HashingEmbeddings(dimensions=32)),
        ),
        (EntityNodeParser(ner=people_and_places), EntityNodeParser(ner=words_in_capitals)),
        (FixedSizeNodeParser(chunk_overlap=0), SlidingWindowNodeParser(chunk_overlap=0)),
    ],
)
def test_cache_key_tells_parsers_apart(one: Any, other: Any) -> None:
    assert key(one) != key(other)


def test_cache_key_stays_when_a_parser_is_used() -> None:
    for case in parsers():
        parser = case.values[0]
        before = key(parser)
        parser([Document(text=STORY)])
        assert key(parser) == before == key(pickle.loads(pickle.dumps(parser)))


# Pickling


@pytest.mark.parametrize(
    ("parser", "name"),
    [
        (RecursiveNodeParser(length_function=lambda text: len(text)), "length_function"),
        (SentenceNodeParser(segmenter=lambda text: [(0, len(text))]), "segmenter"),
        (RecursiveNodeParser(id_func=lambda index, document: str(index)), "id_func"),
        (TitledNodeParser(chunker=RecursiveChunker(length_function=lambda text: 1)), "chunker"),
        (HybridNodeParser(stages=(RecursiveChunker(length_function=lambda text: 1),)), "stages"),
    ],
)
def test_pickling_drops_nothing_silently(parser: Any, name: str) -> None:
    before = dict(parser.__dict__)
    try:
        pickle.dumps(parser)
    except TypeError as error:
        raised = str(error)
    else:
        raised = "nothing"
    assert parser.__dict__ == before, "pickling changed the parser itself"
    assert f"cannot be pickled because of {name}" in raised


def test_pickling_leaves_the_callback_manager_in_place() -> None:
    manager = CallbackManager([Recorder()])
    manager.lock = threading.Lock()  # what no process can take along
    parser = RecursiveNodeParser(
        chunk_size=7, callback_manager=manager, length_function="characters"
    )
    again = pickle.loads(pickle.dumps(parser))
    assert again.to_dict() == parser.to_dict()
    assert parser.callback_manager is manager


def test_pickled_parser_keeps_a_tokenizer() -> None:
    parser = RecursiveNodeParser(length_function=word_tokenizer(), chunk_size=5)
    again = pickle.loads(pickle.dumps(parser))
    assert texts(again([Document(text=STORY)])) == texts(parser([Document(text=STORY)]))
    assert all(len(text.split()) <= 5 for text in texts(again([Document(text=STORY)])))


# Kinds of nodes


@every_parser
def test_images_without_text_become_image_nodes(parser: Any) -> None:
    images = [
        ImageDocument(image="aGk=", id_="one", metadata={"a": 1}),
        ImageDocument(text=" ", image="aGk=", id_="another", metadata={"a": 1}),
    ]
    nodes = parser.get_nodes_from_documents([Document(text=STORY, id_="two"), *images])
    assert len(nodes) == 2 + len(parser.spans(STORY))
    for node, image in zip(nodes[-2:], images, strict=True):
        assert isinstance(node, ImageNode), "what MultiModalVectorStoreIndex looks for"
        assert (node.image, node.text, node.metadata["a"]) == ("aGk=", "", 1)
        assert node.ref_doc_id == image.node_id, "so that it is deleted with its document"


@every_parser
def test_nodes_without_text_are_handed_on(parser: Any) -> None:
    nodes = [
        ImageNode(image="aGk=", text=" ", id_="node"),
        IndexNode(text="", index_id="there", id_="index"),
        Document(image_resource=MediaResource(data=b"hi"), id_="resource"),
    ]
    assert parser.get_nodes_from_documents(nodes) == nodes


@every_parser
def test_image_and_index_nodes_stay_what_they_are(parser: Any) -> None:
    address = "https://x.invalid/a.png"
    image = ImageNode(text=STORY, image="aGk=", image_url=address, image_mimetype="image/png")
    reference = IndexNode(text=STORY, index_id="there", obj=TextNode(text="held"))
    nodes = parser.get_nodes_from_documents([image, reference])
    half = len(parser.spans(STORY))
    assert [type(node) for node in nodes] == [ImageNode] * half + [IndexNode] * half
    shown = {(node.image, node.image_url, node.image_mimetype) for node in nodes[:half]}
    assert shown == {("aGk=", address, "image/png")}
    assert {node.index_id for node in nodes[half:]} == {"there"}
    assert all(node.obj.text == "held" for node in nodes[half:])


# What a chunk takes from its document


@every_parser
def test_nested_metadata_is_shared_with_nobody(parser: Any) -> None:
    document = Document(text=STORY, metadata={"tags": ["a"], "deep": {"er": [1]}})
    one, other, *_ = parser.get_nodes_from_documents([document])
    one.metadata["tags"].append("b")
    one.metadata["deep"]["er"].append(2)
    assert document.metadata == {"tags": ["a"], "deep": {"er": [1]}}
    assert (other.metadata["tags"], other.metadata["deep"]) == (["a"], {"er": [1]})
    assert other.source_node.metadata == {"tags": ["a"], "deep": {"er": [1]}}
    assert other.prev_node.metadata["tags"] == ["a"]
    one.source_node.metadata["tags"].append("d")
    document.metadata["tags"].append("c")
    assert other.metadata["tags"] == ["a"]
    assert other.source_node.metadata["tags"] == ["a"]


@every_parser
def test_excluded_keys_are_shared_with_nobody(parser: Any) -> None:
    document = Document(text=STORY, excluded_embed_metadata_keys=["secret"])
    one, other, *_ = parser.get_nodes_from_documents([document])
    before = list(other.excluded_embed_metadata_keys)
    one.excluded_embed_metadata_keys.append("more")
    assert other.excluded_embed_metadata_keys == before
    assert document.excluded_embed_metadata_keys == ["secret"]


@every_parser
def test_excluded_keys_and_templates_are_carried(parser: Any) -> None:
    document = Document(
        text=STORY,
        metadata={"author": "A", "secret": "S", "noise": "N"},
        excluded_embed_metadata_keys=["secret"],
        excluded_llm_metadata_keys=["noise"],
        metadata_separator=" ; ",
        metadata_template="{key}={value}",
        text_template="<{metadata_str}> {content}",
        embedding=[1.0, 2.0],
    )
    for node in parser.get_nodes_from_documents([document]):
        assert node.embedding is None
        content = node.get_content(metadata_mode=MetadataMode.NONE)
        embedded = node.get_content(metadata_mode=MetadataMode.EMBED)
        asked = node.get_content(metadata_mode=MetadataMode.LLM)
        assert embedded == f"<author=A ; noise=N> {content}".strip()
        assert asked == f"<author=A ; secret=S> {content}".strip()


@every_parser
def test_include_metadata_off_leaves_the_documents_out(parser: Any) -> None:
    document = Document(text=STORY, metadata={"author": "A"})
    bare = type(parser).from_dict({**parser.to_dict(), "include_metadata": False})
    nodes = bare.get_nodes_from_documents([document])
    assert texts(nodes) == texts(parser([document]))
    assert all("author" not in node.metadata for node in nodes)


@every_parser
def test_neighbours_are_tied_within_a_document(parser: Any) -> None:
    documents = [Document(text=STORY, id_="one"), Document(text=STORY, id_="two")]
    nodes = parser.get_nodes_from_documents(documents)
    half = len(nodes) // 2
    assert [node.prev_node.node_id if node.prev_node else None for node in nodes] == [
        None,
        *[node.node_id for node in nodes[: half - 1]],
        None,
        *[node.node_id for node in nodes[half:-1]],
    ]
    assert [n.next_node.node_id for n in nodes[: half - 1]] == [n.node_id for n in nodes[1:half]]
    assert nodes[half - 1].next_node is nodes[-1].next_node is None
    assert {node.source_node.hash for node in nodes[:half]} == {documents[0].hash}
    for one, other in pairwise(nodes[:half]):
        assert (one.next_node.hash, other.prev_node.hash) == (other.hash, one.hash)


@every_parser
def test_neighbours_are_tied_across_the_parts_that_another_parser_made(parser: Any) -> None:
    documents = [Document(text=STORY, id_="one"), Document(text=STORY, id_="two")]
    parts = TokenTextSplitter(chunk_size=30, chunk_overlap=0)(documents)
    nodes = parser(parts)
    assert len(nodes) > 2
    for one, other in pairwise(nodes):
        if one.ref_doc_id == other.ref_doc_id:
            assert (one.next_node.node_id, other.prev_node.node_id) == (other.node_id, one.node_id)
            assert (one.next_node.hash, other.prev_node.hash) == (other.hash, one.hash)
        else:
            assert one.next_node is other.prev_node is None
    loose = type(parser).from_dict({**parser.to_dict(), "include_prev_next_rel": False})
    assert all(set(node.relationships) == {NodeRelationship.SOURCE} for node in loose(parts))


@every_parser
def test_id_func_is_respected(parser: Any) -> None:
    named = type(parser).from_dict({**parser.to_dict(), "id_func": None})
    own = named.model_copy(update={"id_func": numbered})
    nodes = own.get_nodes_from_documents([Document(text=STORY, id_="one")])
    assert [node.node_id for node in nodes] == [f"one-{index}" for index in range(len(nodes))]


@every_parser
def test_duplicated_documents_get_distinct_ids(parser: Any) -> None:
    nodes = parser.get_nodes_from_documents([Document(text=STORY, id_="one")] * 3)
    assert len({node.node_id for node in nodes}) == len(nodes) == 3 * len(parser.spans(STORY))


# Async


async def test_documents_may_come_from_a_generator() -> None:
    parser, documents = RecursiveNodeParser(chunk_size=8), [Document(text="One. Two.", id_="a")]
    nodes = parser.get_nodes_from_documents(each for each in documents)
    assert nodes == await parser.aget_nodes_from_documents(each for each in documents)
    assert nodes == parser(documents) != []


@every_parser
async def test_every_call_gives_the_same_nodes(parser: Any) -> None:
    documents = [
        Document(text=STORY, id_="one", metadata={"title": "Building on rock", "page": 4}),
        Document(text=PASSAGE * 3, id_="two", metadata={"title": "Passages", "tags": ["a"]}),
    ]
    expected = plain(parser.get_nodes_from_documents(documents))
    assert plain(await parser.aget_nodes_from_documents(documents)) == expected
    assert plain(await parser.acall(documents)) == expected
    pipeline = IngestionPipeline(transformations=[parser], disable_cache=True)
    assert plain(pipeline.run(documents=documents)) == expected
    assert plain(await pipeline.arun(documents=documents)) == expected
    assert parser.get_nodes_from_documents([]) == []
    assert await parser.aget_nodes_from_documents([]) == []


# Callbacks and progress


class Recorder(BaseCallbackHandler):
    """Keeps the events that it hears of."""

    def __init__(self) -> None:
        super().__init__([], [])
        self.events: list[tuple[str, CBEventType, list[str]]] = []

    def on_event_start(self, event_type: CBEventType, payload: Any = None, **kwargs: Any) -> str:
        self.events.append(("start", event_type, sorted(payload or {})))
        return str(kwargs.get("event_id", ""))

    def on_event_end(self, event_type: CBEventType, payload: Any = None, **kwargs: Any) -> None:
        self.events.append(("end", event_type, sorted(payload or {})))

    def start_trace(self, trace_id: str | None = None) -> None: ...

    def end_trace(self, trace_id: str | None = None, trace_map: Any = None) -> None: ...


@every_parser
def test_callbacks_hear_of_parsing(parser: Any) -> None:
    recorder = Recorder()
    parameters = {name: getattr(parser, name) for name in type(parser).model_fields}
    parameters["callback_manager"] = CallbackManager([recorder])
    heard = type(parser)(**parameters)
    heard.get_nodes_from_documents([Document(text=STORY)])
    asyncio.run(heard.aget_nodes_from_documents([Document(text=STORY)]))
    one_call = [
        ("start", CBEventType.NODE_PARSING, ["documents"]),
        ("end", CBEventType.NODE_PARSING, ["nodes"]),
    ]
    assert recorder.events == one_call * 2


@every_parser
def test_show_progress_writes_to_standard_error(parser: Any, capsys: Any) -> None:
    document = Document(text=STORY, id_="one")
    quiet = plain(parser.get_nodes_from_documents([document]))
    assert capsys.readouterr() == ("", "")
    assert plain(parser.get_nodes_from_documents([document], show_progress=True)) == quiet
    out, err = capsys.readouterr()
    assert out == ""
    assert "Parsing nodes: 100%" in err


# The ingestion pipeline


def documents() -> list[Document]:
    return [Document(text=STORY, id_="one"), Document(text=PASSAGE * 4, id_="two")]


@pytest.mark.slow
def test_pipeline_with_two_workers_gives_what_one_gives() -> None:
    """Slow, some 30 s: each worker imports LlamaIndex."""
    parser = TitledNodeParser(
        chunker=RecursiveChunker(chunk_size=9, length_function="tokens"), id_func=numbered
    )
    counted = SentenceNodeParser(chunk_size=40, length_function=letters)
    pipeline = IngestionPipeline(transformations=[parser, counted], disable_cache=True)
    expected = plain(pipeline.run(documents=documents()))
    assert plain(pipeline.run(documents=documents(), num_workers=2)) == expected


def test_pipeline_cache_is_hit_by_the_same_parser_alone_also_from_a_file(tmp_path: Path) -> None:
    path, cache = str(tmp_path / "cache.json"), IngestionCache()

    def run(size: int) -> tuple[list[dict[str, Any]], int]:
        parser = RecursiveNodeParser(chunk_size=size, length_function=recorded)
        ASKED.clear()
        nodes = IngestionPipeline(transformations=[parser], cache=cache).run(documents=documents())
        return plain(nodes), len(ASKED)

    first, asked = run(60)
    assert asked > 0
    assert run(60) == (first, 0)
    assert run(61)[1] > 0
    cache.persist(path)
    cache = IngestionCache.from_persist_path(path)
    assert run(60) == (first, 0)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_pipeline_upserts_only_what_changed(is_async: bool) -> None:
    vectors = SimpleVectorStore()
    pipeline = IngestionPipeline(
        transformations=[
            SentenceNodeParser(chunk_size=60, length_function="characters"),
            MockEmbedding(embed_dim=4),
        ],
        docstore=SimpleDocumentStore(),
        vector_store=vectors,
        docstore_strategy=DocstoreStrategy.UPSERTS,
        disable_cache=True,
    )

    def run(*given: Document) -> list[Any]:
        if is_async:
            return list(asyncio.run(pipeline.arun(documents=list(given))))
        return list(pipeline.run(documents=list(given)))

    one, two = documents()
    first = run(one, two)
    assert {node.ref_doc_id for node in first} == {"one", "two"}
    assert run(one, two) == []
    changed = run(one, Document(text="A new text. " * 12, id_="two"))
    assert {node.ref_doc_id for node in changed} == {"two"}
    kept = [node.node_id for node in first if node.ref_doc_id == "one"]
    now = [node.node_id for node in changed]
    assert sorted(vectors.data.embedding_dict) == sorted(kept + now)
