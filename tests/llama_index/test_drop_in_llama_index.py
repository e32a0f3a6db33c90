"""What users do to LlamaIndex's own parsers, done to ours."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import llama_index.core.node_parser
import pytest
from llama_index.core import Document, MockEmbedding, Settings, StorageContext, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.ingestion import IngestionCache, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import HierarchicalNodeParser as TheirHierarchicalNodeParser
from llama_index.core.node_parser import (
    MarkdownElementNodeParser,
    SentenceSplitter,
    TextSplitter,
    get_child_nodes,
    get_leaf_nodes,
    get_root_nodes,
)
from llama_index.core.node_parser.text.utils import truncate_text
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import MetadataMode
from llama_index.core.settings import _Settings
from tokenizers import Tokenizer, models, pre_tokenizers

import rag_splitters
from rag_splitters import (
    CATALOGUE,
    ContextualChunker,
    HierarchicalChunker,
    ParagraphChunker,
    RecursiveChunker,
    register,
)
from rag_splitters.llama_index import (
    ChunkerNodeParser,
    CodeNodeParser,
    ContentAwareNodeParser,
    ContextualNodeParser,
    HashingEmbedding,
    HierarchicalNodeParser,
    HybridNodeParser,
    JsonNodeParser,
    ModalityNodeParser,
    RecursiveNodeParser,
    SemanticNodeParser,
    SentenceNodeParser,
    TitledNodeParser,
    TokenNodeParser,
)
from rag_splitters.models import HashingEmbeddings
from rag_splitters.text.encodings import load_encoding
from tests.llama_index.test_llama_index import key, texts
from tests.support.embedding_doubles import CountingEmbeddings
from tests.support.forms import front_end_class, required
from tests.support.processes import run_python

ROOT = Path(rag_splitters.__file__).parents[1]
TOKENS = load_encoding("cl100k_base")

SENTENCES = [
    f"Ship number {number} left the harbour at dawn with a cargo of salt and wool. "
    f"Its crew of {number + 3} men did not know how long the voyage would be."
    for number in range(60)
]
PARAGRAPHS = [" ".join(SENTENCES[at : at + 6]) for at in range(0, 60, 6)]
TEXT = "\n\n".join(PARAGRAPHS)
TREE = HierarchicalChunker(chunk_size=128, length_function="tokens", emit="all")

PARSERS = {name: front_end_class(name, "llama_index") for name in CATALOGUE}
every_class = pytest.mark.parametrize("name", PARSERS)


def least(name: str) -> dict[str, Any]:
    """The parameters of a parser that has no default for them, or has a size only if told."""
    return {"chunk_size": 90} if name == "separator" else required(name)


def make(name: str, **parameters: Any) -> Any:
    """A parser of each strategy."""
    return PARSERS[name](**{**least(name), **parameters})


def token_count(text: str) -> int:
    return len(TOKENS.encode_ordinary(text))


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """LlamaIndex's global settings, which are as before when a test is over."""
    monkeypatch.setattr("llama_index.core.global_tokenizer", None)
    before = dict(vars(Settings))
    for name in vars(_Settings()):
        setattr(Settings, name, None)
    Settings.embed_model = MockEmbedding(embed_dim=4)
    Settings.llm = MockLLM()
    yield
    vars(Settings).clear()
    vars(Settings).update(before)


# Settings


def test_settings_node_parser_cuts_what_an_index_is_made_of() -> None:
    Settings.node_parser = SentenceNodeParser(chunk_size=100)
    Settings.llm = MockLLM()
    index = VectorStoreIndex.from_documents([Document(text=TEXT, id_="one")])
    nodes = list(index.docstore.docs.values())
    parser = SentenceNodeParser(chunk_size=100)
    assert texts(nodes) == parser.split_text(TEXT)
    assert [TEXT[n.start_char_idx : n.end_char_idx] for n in nodes] == texts(nodes)


@every_class
def test_settings_reach_every_parser(name: str) -> None:
    manager = CallbackManager([])
    Settings.callback_manager = manager
    Settings.node_parser = make(name)
    assert Settings.node_parser.callback_manager is manager
    assert Settings.text_splitter is Settings.node_parser
    assert Settings.transformations == [Settings.node_parser]


@every_class
def test_settings_chunk_size_and_overlap(name: str) -> None:
    Settings.text_splitter = make(name)
    if "chunk_size" not in PARSERS[name].model_fields:
        with pytest.raises(ValueError, match="does not have chunk size"):
            Settings.chunk_size = 64
        return
    Settings.chunk_size = 64
    assert Settings.chunk_size == Settings.node_parser.chunk_size == 64
    assert Settings.node_parser.split_text(TEXT) == make(name, chunk_size=64).split_text(TEXT)
    if name != "proposition":  # it has no overlap
        Settings.chunk_overlap = 20
        assert Settings.chunk_overlap == Settings.node_parser.chunk_overlap == 20
        overlapping = make(name, chunk_size=64, chunk_overlap=20)
        assert Settings.node_parser.split_text(TEXT) == overlapping.split_text(TEXT)


PAGE = ROOT.joinpath("docs", "migration", "llama_index.md").read_text(encoding="utf-8")


def test_migration_page_has_every_parser_of_llama_index() -> None:
    names = [name for name in llama_index.core.node_parser.__all__ if name[0].isupper()]
    parsers = {name for name in names if name.endswith(("Splitter", "Parser"))}
    general = {"MetadataAwareTextSplitter", "NodeParser", "SimpleNodeParser", "TextSplitter"}
    assert not {name for name in parsers - general if f"`{name}" not in PAGE}


def test_the_code_of_the_migration_page_runs() -> None:
    code = PAGE.split("```python\n")[1].split("```")[0]
    exec(compile(code, "llama_index.md", "exec"), {})
    assert isinstance(Settings.node_parser, SentenceNodeParser)
    assert Settings.chunk_size == 512


# The unit


def test_sizes_are_tokens() -> None:
    ours = SentenceNodeParser(chunk_size=128).get_nodes_from_documents([Document(text=TEXT)])
    splitter = SentenceSplitter(chunk_size=128, chunk_overlap=0)
    theirs = splitter.get_nodes_from_documents([Document(text=TEXT)])
    assert max(token_count(node.text) for node in ours) <= 128
    assert abs(len(ours) - len(theirs)) <= 1


def characters(text: str) -> list[str]:
    """A tokenizer of a user's own."""
    return list(text)


register("tests.drop_in.characters", characters)


def test_tokenizer_is_the_unit() -> None:
    parser = SentenceNodeParser(chunk_size=100, tokenizer=characters)
    expected = SentenceNodeParser(chunk_size=100, length_function="characters").split_text(TEXT)
    assert parser.split_text(TEXT) == expected
    described = json.loads(json.dumps(parser.to_dict()))
    assert SentenceNodeParser.from_dict(described).split_text(TEXT) == expected
    assert pickle.loads(pickle.dumps(parser)).split_text(TEXT) == expected


def test_size_that_other_code_asks_for_is_in_the_unit() -> None:
    assert SentenceNodeParser()._token_size(TEXT) == SentenceSplitter()._token_size(TEXT)
    assert SentenceNodeParser(tokenizer=characters)._token_size("Tea") == 3
    inner = SentenceNodeParser(length_function="words")
    assert TitledNodeParser(chunker=inner)._token_size("Green tea") == 2


@pytest.mark.parametrize(
    "tokenizer",
    [
        TOKENS.encode,
        TOKENS.encode_ordinary,
        partial(TOKENS.encode, allowed_special="all"),
        SentenceSplitter()._tokenizer,
    ],
)
def test_known_tokenizers_are_counted_by_our_own_code(tokenizer: Any) -> None:
    assert SentenceNodeParser(tokenizer=tokenizer).length_function == "tokens"


def test_a_tokenizer_object_is_the_unit() -> None:
    words = Tokenizer(models.WordLevel(vocab={"?": 0}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    expected = SentenceNodeParser(chunk_size=20, length_function="words").split_text(TEXT)
    assert SentenceNodeParser(chunk_size=20, tokenizer=words).split_text(TEXT) == expected
    assert SentenceNodeParser(chunk_size=20, tokenizer=words.encode).split_text(TEXT) == expected


@pytest.mark.parametrize("name", ["hybrid", "modality", "titled"])
def test_unset_tokenizers_of_nested_strategies_follow_settings(name: str) -> None:
    Settings.tokenizer = characters
    assert len(make(name).split_text(TEXT)) > 20


def test_an_unset_tokenizer_follows_settings() -> None:
    Settings.tokenizer = characters
    expected = SentenceNodeParser(chunk_size=100, length_function="characters").split_text(TEXT)
    assert SentenceNodeParser(chunk_size=100).split_text(TEXT) == expected
    words = SentenceNodeParser(chunk_size=100, length_function="words")
    assert words.length_function == "words"
    before = SentenceNodeParser(chunk_size=100)
    Settings.tokenizer = str.split
    assert before.split_text(TEXT) == expected


def test_tokenizer_and_length_function_contradict() -> None:
    with pytest.raises(ValueError, match="pass length_function or tokenizer, not both"):
        SentenceNodeParser(tokenizer=characters, length_function="words")


@pytest.mark.parametrize(
    "names", [("separator", "backup_separators"), ("backup_separators", "separator")]
)
def test_first_of_two_wrong_options_is_the_one_that_is_named(names: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=rf"^leave {names[0]} out: .*got ';'"):
        TokenNodeParser(**dict.fromkeys(names, ";"))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"header_path_separator": "/"}, r"is in metadata\[\"headings\"\], as \"Tea > Green tea\""),
        ({"tags": ["p"]}, "main_content_only=False adds menus"),
    ],
)
def test_options_of_parsers_for_files_name_ours(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^leave {next(iter(option))} out: .*{message}"):
        ContentAwareNodeParser(**option)


# Constructors and methods


@every_class
def test_from_defaults_is_the_constructor(name: str) -> None:
    assert PARSERS[name].from_defaults(**least(name), callback_manager=None) is not None
    parser = PARSERS[name].from_defaults(**least(name), include_prev_next_rel=False)
    assert parser.to_dict() == make(name, include_prev_next_rel=False).to_dict()


def test_positional_arguments_are_in_their_order() -> None:
    sentences = SentenceNodeParser(" ", 100, 20, characters, "\n\n")
    assert (sentences.chunk_size, sentences.chunk_overlap) == (100, 20)
    assert sentences.length_function("four") == 4
    assert sentences.paragraph_separator == "\n\n"
    again = SentenceNodeParser.from_defaults(" ", 100, 20, characters, "\n\n")
    assert sentences.to_dict() == again.to_dict()
    tokens = TokenNodeParser(512, 50)
    assert (tokens.chunk_size, tokens.chunk_overlap) == (512, 50)
    assert tokens.to_dict() == TokenNodeParser.from_defaults(512, 50, None, None, " ").to_dict()
    assert CodeNodeParser("python", 40, 15, 300).chunk_size == 300
    model = HashingEmbeddings()
    semantic = SemanticNodeParser.from_defaults(model, 90, 2)
    assert semantic.embeddings.model is model
    assert (semantic.breakpoint_threshold_amount, semantic.buffer_size) == (90, 2)
    assert HierarchicalNodeParser.from_defaults([200, 50], 5).chunk_sizes == (200, 50)


@every_class
def test_texts_are_those_of_the_nodes(name: str) -> None:
    parser = make(name)
    assert isinstance(parser, TextSplitter)
    nodes = parser.get_nodes_from_documents([Document(text=TEXT)])
    whole = [TEXT[n.start_char_idx : n.end_char_idx] for n in nodes]
    split = parser.split_text(TEXT)
    assert all(text.endswith(own) for text, own in zip(split, whole, strict=True))
    assert parser.split_texts([TEXT, "Short. " * 3]) == split + parser.split_text("Short. " * 3)


def test_texts_leave_room_for_metadata() -> None:
    parser = SentenceNodeParser(chunk_size=100)
    metadata = "source: a long name\nauthor: nobody\n\n"
    cut = parser.split_text_metadata_aware(TEXT, metadata)
    assert max(token_count(metadata + text) for text in cut) <= 100
    assert parser.split_texts_metadata_aware([TEXT, TEXT], [metadata, ""]) == [
        *cut,
        *parser.split_text(TEXT),
    ]
    with pytest.raises(ValueError, match="the metadata of the text leaves no room"):
        parser.split_text_metadata_aware(TEXT, "word " * 100)
    with pytest.raises(ValueError, match="must have the same length"):
        parser.split_texts_metadata_aware([TEXT], [])


def test_truncate_text_takes_the_first_chunk() -> None:
    assert truncate_text("One. Two. Three.", SentenceNodeParser(chunk_size=4)) == "One. Two."


def test_citation_query_engine() -> None:
    index = VectorStoreIndex.from_documents([Document(text=TEXT)])
    engine = CitationQueryEngine.from_args(index, text_splitter=SentenceNodeParser(chunk_size=40))
    response = engine.query("Which ship?")
    cited = [node.node.text for node in response.source_nodes]
    assert len(cited) > 2
    assert all(text.startswith(f"Source {n}:\n") for n, text in enumerate(cited, 1))


@every_class
def test_json_schema_has_the_fields(name: str) -> None:
    schema = PARSERS[name].model_json_schema()
    json.dumps(schema)
    assert schema["properties"].keys() - {"class_name"} == PARSERS[name].model_fields.keys()


# LlamaIndex's names of parameters


def test_sentence_splitters_names() -> None:
    by_lines = SentenceNodeParser(
        chunk_size=100, chunking_tokenizer_fn=lambda text: text.splitlines(keepends=True)
    )
    assert by_lines.split_text("one\n" * 200) == SentenceNodeParser(
        chunk_size=100, segmenter=lambda text: [(a, a + 4) for a in range(0, len(text), 4)]
    ).split_text("one\n" * 200)
    phrases = SentenceNodeParser(chunk_size=6, secondary_chunking_regex="[^,]+,?")
    assert phrases.split_text("in the morning, in the late evening, at night") == [
        "in the morning,",
        "in the late evening,",
        "at night",
    ]
    paragraphs = SentenceNodeParser(chunk_size=12, paragraph_separator=";;")
    assert paragraphs.split_text("One is. Two is.;; Three is. Four is. Five is.")[0] == (
        "One is. Two is.;;"
    )
    with pytest.raises(ValueError, match=r"chunking_tokenizer_fn must be a function .*, got 3"):
        SentenceNodeParser(chunking_tokenizer_fn=3)
    assert SentenceNodeParser(separator=" ").to_dict() == SentenceNodeParser().to_dict()
    with pytest.raises(ValueError, match=r"RecursiveNodeParser\(separators="):
        SentenceNodeParser(separator="-")


def test_semantic_splitters_names() -> None:
    model = MockEmbedding(embed_dim=4)
    parser = SemanticNodeParser(
        embed_model=model,
        breakpoint_percentile_threshold=80,
        buffer_size=2,
        sentence_splitter=lambda text: text.split(". "),
    )
    assert parser.embeddings.model is model
    assert (parser.breakpoint_threshold_amount, parser.buffer_size) == (80, 2)
    assert parser.segmenter("a. b") == [(0, 1), (3, 4)]
    with pytest.raises(ValueError, match="pass embeddings or embed_model, not both"):
        SemanticNodeParser(embed_model=model, embeddings=model)
    with pytest.raises(ValueError, match="embed_model must be a LangChain Embeddings"):
        SemanticNodeParser(embed_model=3)


def test_code_splitters_names() -> None:
    sized = CodeNodeParser(language="python", chunk_lines=4, chunk_lines_overlap=1, max_chars=30)
    assert (sized.chunk_size, sized.length_function) == (30, "characters")
    tokens = CodeNodeParser(language="python", count_mode="token", max_tokens=99, max_chars=30)
    assert (tokens.chunk_size, tokens.length_function) == (99, "tokens")
    with pytest.raises(ValueError, match="pass language= instead"):
        CodeNodeParser(language="python", parser=object())


def test_token_splitters_names() -> None:
    usual = TokenNodeParser(separator=" ", backup_separators=["\n"])
    assert usual.to_dict() == TokenNodeParser().to_dict()
    with pytest.raises(ValueError, match=r"RecursiveNodeParser\(separators="):
        TokenNodeParser(backup_separators=[";"])


def test_hierarchical_parsers_names() -> None:
    with pytest.raises(ValueError, match="pass chunk_sizes="):
        HierarchicalNodeParser.from_defaults(node_parser_ids=["a"], node_parser_map={})


# The hierarchical parser


def test_from_defaults_emits_all_levels_in_tokens() -> None:
    document = Document(text=TEXT, id_="one")
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[1024, 256, 64])
    nodes = parser.get_nodes_from_documents([document])
    theirs = TheirHierarchicalNodeParser.from_defaults(chunk_sizes=[1024, 256, 64], chunk_overlap=0)
    expected = theirs.get_nodes_from_documents([document])
    for pick in (get_root_nodes, get_leaf_nodes):
        assert abs(len(pick(nodes)) - len(pick(expected))) <= 0.2 * len(pick(nodes)) + 1
    for level, size in enumerate((1024, 256, 64)):
        sizes = [token_count(node.text) for node in nodes if node.metadata["level"] == level]
        assert size / 2 < max(sizes) <= size
    assert get_child_nodes(get_root_nodes(nodes), nodes)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_auto_merging_retriever_merges(asynchronous: bool) -> None:
    subjects = "lighthouse bakery orchard railway theatre glacier".split()
    text = "\n\n".join(
        " ".join(f"Many people saw the {subject} on day {day} of the year." for day in range(12))
        for subject in subjects
    )
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[512, 180, 45])
    documents = [Document(text=text)]
    if asynchronous:
        nodes = await parser.aget_nodes_from_documents(documents)
    else:
        nodes = parser.get_nodes_from_documents(documents)
    context = StorageContext.from_defaults()
    context.docstore.add_documents(nodes)
    leaves = get_leaf_nodes(nodes)
    index = VectorStoreIndex(leaves, storage_context=context, embed_model=HashingEmbedding())
    base = index.as_retriever(similarity_top_k=3)
    before = base.retrieve("the orchard")
    merged = AutoMergingRetriever(base, context).retrieve("the orchard")
    assert len(merged) < len(before)
    (parent,) = [each.node for each in merged if each.node.child_nodes]
    assert text[parent.start_char_idx : parent.end_char_idx] == parent.text
    assert parent.text.count("orchard") == 12


# Metadata


LONG = {"title": "The voyages of the salt ships", "path": "/" + "archive/" * 12, "page": 3}
SIZED = [name for name, kind in CATALOGUE.items() if "chunk_size" in kind.model_fields]


@pytest.mark.parametrize("name", [n for n in SIZED if n != "proposition"])
def test_chunks_leave_room_for_their_metadata(name: str) -> None:
    document = Document(text=TEXT, metadata=LONG, id_="one")
    parser = make(name, chunk_size=128)
    nodes = parser.get_nodes_from_documents([document])
    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        assert max(token_count(leaf.get_content(mode)) for leaf in get_leaf_nodes(nodes)) <= 128
    alike = texts(make(name, chunk_size=128, count_metadata=False)([document]))
    shows_more = name in ("contextual", "titled")
    assert shows_more or alike == parser.split_text(TEXT)
    bare = make(name, chunk_size=128, include_metadata=False)
    assert texts(bare([document])) == alike
    assert len(nodes) >= len(alike)


def test_room_is_left_for_what_is_embedded_or_shown_alone() -> None:
    parser = SentenceNodeParser(chunk_size=128)
    excluded = Document(
        text=TEXT,
        metadata=LONG,
        excluded_embed_metadata_keys=list(LONG),
        excluded_llm_metadata_keys=list(LONG),
    )
    assert texts(parser([excluded])) == parser.split_text(TEXT)
    shown = Document(text=TEXT, metadata=LONG, excluded_embed_metadata_keys=list(LONG))
    nodes = parser([shown])
    assert len(nodes) > len(parser.split_text(TEXT))
    assert max(token_count(node.get_content(MetadataMode.LLM)) for node in nodes) <= 128


def test_room_is_left_for_the_templates() -> None:
    document = Document(
        text=TEXT,
        metadata={"page": 3},
        metadata_template="The {key} of this passage in the printed edition is: {value}",
        text_template="Here is what is known:\n{metadata_str}\nAnd here is the text:\n{content}",
    )
    nodes = SentenceNodeParser(chunk_size=64)([document])
    assert max(token_count(node.get_content(MetadataMode.EMBED)) for node in nodes) <= 64


def test_each_document_has_its_own_room() -> None:
    documents = [
        Document(text=TEXT, metadata={}, id_="none"),
        Document(text=TEXT, metadata=LONG, id_="long"),
        Document(text=TEXT, metadata={"page": 3}, id_="short"),
        Document(text=TEXT, metadata=LONG, id_="long again"),
    ]
    parser = SentenceNodeParser(chunk_size=128, chunk_overlap=20)
    together = parser.get_nodes_from_documents(documents)
    alone = [node for document in documents for node in parser([document])]
    assert [node.to_dict() for node in together] == [node.to_dict() for node in alone]
    counts = [sum(n.ref_doc_id == d.id_ for n in together) for d in documents]
    assert counts[0] <= counts[2] < counts[1] == counts[3]


async def test_room_is_the_same_asynchronously() -> None:
    documents = [Document(text=TEXT, metadata=LONG, id_="1"), Document(text=TEXT, id_="2")]
    parser = SemanticNodeParser(embed_model=HashingEmbeddings(), chunk_size=128)
    expected = [node.to_dict() for node in parser.get_nodes_from_documents(documents)]
    nodes = await parser.aget_nodes_from_documents(documents)
    assert [node.to_dict() for node in nodes] == expected


def test_a_model_is_asked_once_for_documents_with_different_metadata() -> None:
    model = CountingEmbeddings()
    documents = [Document(text=text, metadata={"page": n}) for n, text in enumerate(PARAGRAPHS)]
    SemanticNodeParser(embeddings=model).get_nodes_from_documents(documents)
    assert len(model.calls) == 1


def test_metadata_are_measured_once_for_each_text_of_them() -> None:
    measured: list[str] = []

    def words(text: str) -> int:
        measured.append(text)
        return len(text.split())

    documents = [Document(text=f"Page {n}.", metadata={"file": "report.md"}) for n in range(50)]
    RecursiveNodeParser(length_function=words).get_nodes_from_documents(documents)
    assert sum("report.md" in text for text in measured) <= 3


def test_metadata_without_room_name_the_document() -> None:
    document = Document(text=TEXT, metadata={"summary": "word " * 200}, id_="report-7")
    message = r"the metadata of document 'report-7' leaves no room .* \(chunk_size=128\)"
    with pytest.raises(ValueError, match=message):
        SentenceNodeParser(chunk_size=128).get_nodes_from_documents([document])
    with pytest.raises(ValueError, match="is longer than chunk size"):
        SentenceSplitter(chunk_size=128, chunk_overlap=0).get_nodes_from_documents([document])


@pytest.mark.parametrize(
    "parser",
    [
        HierarchicalNodeParser(),
        HierarchicalNodeParser(chunk_size=128),
        ModalityNodeParser(chunk_size=128),
        ContextualNodeParser(llm=lambda prompt: "Whales.", chunk_size=128),
        TitledNodeParser(chunker=TREE),
        HybridNodeParser(stages=[ParagraphChunker(), TREE]),
    ],
)
def test_metadata_without_room_for_the_smallest_chunks_name_the_document(
    parser: ChunkerNodeParser,
) -> None:
    document = Document(text=TEXT, metadata={"summary": "word " * 150}, id_="report-7")
    with pytest.raises(ValueError, match="the metadata of document 'report-7' leaves no room"):
        parser.get_nodes_from_documents([document])


@pytest.mark.parametrize("words", [20, 60, 90, 107])  # the label "context: " takes 3 tokens
def test_context_leaves_room_for_metadata(words: int) -> None:
    document = Document(text=TEXT, metadata={"title": "Tea " * 40, "k": "word " * words})
    document.excluded_embed_metadata_keys = document.excluded_llm_metadata_keys = ["title"]
    parser = ContextualNodeParser(llm=lambda prompt: "Whales, " * 60, chunk_size=128)
    nodes = parser.get_nodes_from_documents([document])
    before = document.get_metadata_str(MetadataMode.EMBED)
    assert all(parser.fits(f"{before}\n\n{n.metadata['context']}\n\n{n.text}") for n in nodes)
    assert min(len(node.text.split()) for node in nodes[:-1]) > 1


@pytest.mark.parametrize("metadata", [{}, {"file": "moby.txt"}])
@pytest.mark.parametrize("include_metadata", [True, False])
@pytest.mark.parametrize(
    "parser",
    [
        ContextualNodeParser(llm=lambda prompt: "Whales, " * 60, chunk_size=48),
        TitledNodeParser(
            chunk_size=48,
            length_function="tokens",
            chunker=ContextualChunker(llm=lambda prompt: "On board."),
        ),
        JsonNodeParser(chunk_size=48, with_path=True),
    ],
    ids=["model", "titled", "json"],
)
def test_what_is_embedded_with_a_context_fits(
    parser: ChunkerNodeParser, include_metadata: bool, metadata: dict[str, str]
) -> None:
    members = json.dumps({"Voyages": [{"of the ship": f"{TEXT[:90]} {n}"} for n in range(30)]})
    text = members if isinstance(parser, JsonNodeParser) else f"# A voyage\n\n{TEXT}"
    parser = parser.model_copy(update={"include_metadata": include_metadata})
    nodes = parser.get_nodes_from_documents([Document(text=text, metadata=metadata)])
    embedded = [node.get_content(MetadataMode.EMBED) for node in nodes]
    assert max(map(token_count, embedded)) <= 48
    contexts = [str(node.metadata.get("context")) for node in nodes[1:]]
    assert all(each.count(own) == 1 for each, own in zip(embedded[1:], contexts, strict=True))


@pytest.mark.parametrize("template", ["{text}", "{0}", "{content"])
def test_template_that_cannot_be_filled_in_names_the_document(template: str) -> None:
    document = Document(text=TEXT, metadata={"a": 1}, text_template=template, id_="report-7")
    with pytest.raises(ValueError, match="text_template of document 'report-7' must be a format"):
        SentenceNodeParser().get_nodes_from_documents([document])


def test_little_room_does_not_turn_into_overlap() -> None:
    document = Document(text=TEXT, metadata={"summary": "word " * 150})
    nodes = SentenceNodeParser(chunk_size=200, chunk_overlap=60)([document])
    repeated = sum(a.end_char_idx - b.start_char_idx for a, b in pairwise(nodes))
    assert 0 < repeated < 2 * len(TEXT)


# The ingestion pipeline


@pytest.mark.parametrize("option", ["length_function", "id_func", "tokenizer", "segmenter"])
def test_a_lambda_runs_in_a_pipeline_and_is_cached(option: str) -> None:
    calls: list[str] = []
    functions: dict[str, Any] = {
        "length_function": lambda text: calls.append(text) or len(text),
        "id_func": lambda number, node: calls.append("") or f"{node.node_id}-{number}",
        "tokenizer": lambda text: calls.append(text) or text.split(),
        "segmenter": lambda text: calls.append(text) or [(0, len(text))],
    }
    cache = IngestionCache()

    def run(function: Any) -> tuple[list[str], int]:
        calls.clear()
        parser = SentenceNodeParser(chunk_size=200, **{option: function})
        pipeline = IngestionPipeline(transformations=[parser], cache=cache)
        nodes = pipeline.run(documents=[Document(text=TEXT, id_="one")])
        return texts(nodes), len(calls)

    function = functions[option]
    first, count = run(function)
    assert count > 0
    assert run(function) == (first, 0)
    assert run(lambda *args: function(*args)) == (first, count)  # another function: no stale chunk


def test_lambdas_of_models_run_in_a_pipeline() -> None:
    parser = SemanticNodeParser(
        embeddings=lambda texts: HashingEmbeddings(dimensions=8).embed_documents(texts),
        chunk_size=128,
    )
    pipeline = IngestionPipeline(transformations=[parser])
    assert pipeline.run(documents=[Document(text=TEXT)])
    assert key(parser) == key(parser)


@pytest.mark.slow
def test_the_cache_key_of_a_lambda_holds_in_one_process_alone() -> None:
    def closure(size: int) -> Any:
        return lambda text: len(text) // size

    one, other = closure(1), closure(2)
    assert key(SentenceNodeParser(length_function=one)) == key(
        SentenceNodeParser(length_function=one)
    )
    assert key(SentenceNodeParser(length_function=one)) != key(
        SentenceNodeParser(length_function=other)
    )
    nested = [TitledNodeParser(chunker=RecursiveChunker(length_function=f)) for f in (one, other)]
    assert key(nested[0]) != key(nested[1])
    code = (
        "from rag_splitters.llama_index import SentenceNodeParser\n"
        "print(SentenceNodeParser(length_function=lambda text: 1).to_dict()['length_function'])"
    )
    assert run_python(code) != run_python(code)


@pytest.mark.parametrize("id_func", [None, lambda number, node: f"{node.node_id}-{number}"])
def test_a_parser_inside_a_parser_of_llama_index_runs_in_a_pipeline(id_func: Any) -> None:
    inner = SentenceNodeParser(chunk_size=64, id_func=id_func)
    outer = MarkdownElementNodeParser(llm=MockLLM(), nested_node_parser=inner)
    nodes = IngestionPipeline(transformations=[outer]).run(documents=[Document(text=TEXT, id_="a")])
    assert texts(nodes) == inner.split_text(TEXT)


def test_a_dead_functions_key_is_never_another_functions() -> None:
    keys = {key(SentenceNodeParser(length_function=lambda text: 1)) for _ in range(100)}
    assert len(keys) == 100


def test_a_configuration_asks_for_its_lambdas() -> None:
    described = SentenceNodeParser(length_function=lambda text: len(text)).to_dict()
    with pytest.raises(ValueError, match="pass it again as length_function="):
        SentenceNodeParser.from_dict(json.loads(json.dumps(described)))
    again = SentenceNodeParser.from_dict(described, length_function="characters")
    assert again.length_function == "characters"


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        (SentenceNodeParser, {"tokenizer": lambda text: text.split()}),
        (SentenceNodeParser, {"chunking_tokenizer_fn": lambda text: text.split(". ")}),
        (SemanticNodeParser, {"embed_model": MockEmbedding(embed_dim=4)}),
    ],
    ids=["tokenizer", "chunking_tokenizer_fn", "embed_model"],
)
def test_a_configuration_takes_its_functions_under_the_names_of_llama_index(
    kind: Any, option: dict[str, Any]
) -> None:
    parser = kind(chunk_size=50, **option)
    described = parser.to_json()
    with pytest.raises(ValueError, match=r"pass (it|the model) again as"):
        kind.from_json(described)
    assert kind.from_json(described, **option) == parser
    assert kind.from_dict(json.loads(described), **option).split_text(TEXT) == parser.split_text(
        TEXT
    )
