"""What users do to LangChain's own splitters, done to ours: each case of the table in FINDINGS."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import langchain_text_splitters
import llama_index.core
import pytest
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import (
    CharacterTextSplitter,
    Language,
    RecursiveCharacterTextSplitter,
    TextSplitter,
    TokenTextSplitter,
)

from rag_splitters import langchain as ours
from rag_splitters.langchain import (
    RecursiveTextSplitter,
    SemanticTextSplitter,
    SentenceTextSplitter,
    SeparatorTextSplitter,
)
from rag_splitters.models import HashingEmbeddings

PAIRS = [
    (RecursiveCharacterTextSplitter, RecursiveTextSplitter),
    (CharacterTextSplitter, SeparatorTextSplitter),
]
every_pair = pytest.mark.parametrize(("theirs", "kind"), PAIRS, ids=lambda kind: kind.__name__)

FAQ = "Intro text here.\nQ: Who came?\nA: Nobody.\nQ: When and where?\nA: At ten, at the harbour."
NOTES = """Intro.
## A title
Some text of it, and more of it.

## Another
Its text ends here.
"""
PROSE = "".join(f"Sentence number {number} is about ships. " * 6 + "\n\n" for number in range(30))


def texts(splitter: TextSplitter, text: str) -> list[str]:
    return [document.page_content for document in splitter.create_documents([text])]


# splitter.chunk_size = ...


@every_pair
def test_options_can_be_changed_through_the_splitter_of_a_retriever(theirs: Any, kind: Any) -> None:
    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(HashingEmbeddings()),
        docstore=InMemoryStore(),
        child_splitter=kind(chunk_size=400),
    )
    retriever.child_splitter._chunk_size = 60
    splitter: Any = retriever.child_splitter
    splitter.length_function = "words"
    splitter.chunk_size = 8
    retriever.add_documents([Document(page_content=PROSE)])
    assert splitter == kind(chunk_size=8, length_function="words")
    with pytest.raises(ValueError, match="chunk_size must be a whole number of at least 1"):
        splitter.chunk_size = 0
    assert splitter.chunk_size == 8


def test_options_can_be_assigned_by_langchains_names() -> None:
    splitter: Any = SeparatorTextSplitter(chunk_size=5)
    splitter.separator, splitter.is_separator_regex = r"\d", True
    assert splitter.split_text("one1two2three") == ["one", "two", "three"]


# Private attributes that other code reads


@every_pair
@pytest.mark.parametrize(
    "options",
    [
        {"chunk_size": 50, "chunk_overlap": 5},
        {"chunk_size": 50, "chunk_overlap": 5, "length_function": lambda text: len(text.split())},
        {"chunk_size": 50, "chunk_overlap": 5, "keep_separator": "end", "strip_whitespace": False},
        {"chunk_size": 50, "chunk_overlap": 5, "keep_separator": False, "add_start_index": True},
        {"chunk_size": 50, "chunk_overlap": 5, "keep_separator": True, "is_separator_regex": True},
    ],
)
def test_attributes_that_other_code_reads_are_there(theirs: Any, kind: Any, options: Any) -> None:
    one, other = theirs(**{"add_start_index": True, **options}), kind(**options)
    for name in set(vars(one)) - {"_length_function"}:
        assert getattr(other, name) == getattr(one, name), name
    assert other._length_function(PROSE) == one._length_function(PROSE)


def test_attributes_of_a_splitter_for_a_language_are_there() -> None:
    one, other = (
        kind.from_language(Language.PYTHON, chunk_size=50, chunk_overlap=5)
        for kind in (RecursiveCharacterTextSplitter, RecursiveTextSplitter)
    )
    for name in set(vars(one)) - {"_length_function", "_separators", "_add_start_index"}:
        assert getattr(other, name) == getattr(one, name), name


def test_overlap_is_read_in_units() -> None:
    assert ours.TokenTextSplitter()._chunk_overlap == 25
    assert RecursiveTextSplitter(chunk_size=50, chunk_overlap=0.1)._chunk_overlap == 5
    assert ours.HybridTextSplitter(chunk_overlap=7)._chunk_overlap == 7


def test_unit_is_that_of_the_strategy_inside() -> None:
    inner = RecursiveTextSplitter(length_function="words")
    assert ours.TitledTextSplitter(chunker=inner)._length_function("one two") == 2
    assert ours.ModalityTextSplitter()._length_function("one two") == 7


def test_separators_are_those_that_are_used() -> None:
    assert RecursiveTextSplitter()._separators == RecursiveCharacterTextSplitter()._separators
    assert RecursiveTextSplitter(separators=["|"])._separators == ["|"]
    assert RecursiveTextSplitter(separators=[]) == RecursiveTextSplitter()
    assert RecursiveTextSplitter(language="go")._separators[0] == r"\r?\n[ \t]*(?:func)\b"
    by_alias = RecursiveTextSplitter(language="js"), RecursiveTextSplitter(language="javascript")
    assert by_alias[0]._separators == by_alias[1]._separators


# from_language, get_separators_for_language


@pytest.mark.parametrize("language", list(Language), ids=lambda each: each.value)
def test_every_language_works_as_a_member_and_as_a_string(language: Language) -> None:
    splitter = RecursiveTextSplitter.from_language(language, chunk_size=40, chunk_overlap=5)
    assert splitter == RecursiveTextSplitter.from_language(
        language.value, chunk_size=40, chunk_overlap=5
    )
    assert all(0 < len(text) <= 40 for text in splitter.split_text(NOTES))
    separators = RecursiveTextSplitter.get_separators_for_language(language)
    assert separators == RecursiveTextSplitter.get_separators_for_language(language.value)
    if language is not Language.PERL:  # LangChain lists it and has no separators for it
        theirs = RecursiveCharacterTextSplitter.get_separators_for_language(language)
        assert separators == theirs
    again = RecursiveTextSplitter(separators, is_separator_regex=True, chunk_size=40)
    assert "".join("".join(again.split_text(NOTES)).split()) == "".join(NOTES.split())


@pytest.mark.parametrize(
    "call",
    [
        RecursiveTextSplitter.from_language,
        RecursiveTextSplitter.get_separators_for_language,
        lambda name: RecursiveTextSplitter(language=name),
    ],
)
def test_unknown_language_raises(call: Callable[[str], Any]) -> None:
    with pytest.raises(ValueError, match=r"language must be one of c, cobol.*got 'klingon'"):
        call("klingon")


def test_subclass_written_for_langchain_works() -> None:
    class PythonSplitter(RecursiveTextSplitter):
        def __init__(self, **kwargs: Any) -> None:
            separators = self.get_separators_for_language(Language.PYTHON)
            super().__init__(separators=separators, **kwargs)

    code = "class One:\n\n    def two(self):\n        pass\n\ndef three():\n    pass\n"
    assert PythonSplitter(chunk_size=45).split_text(code) == [
        "class One:\n\n    def two(self):\n        pass",
        "def three():\n    pass",
    ]


@every_pair
def test_constructors_of_a_subclass_get_the_parameters_of_langchain(theirs: Any, kind: Any) -> None:
    for base in (theirs, kind):

        class Fixed(base):  # type: ignore[misc]
            def __init__(self, chunk_size: int = 9, length_function: Any = len) -> None:
                super().__init__(
                    chunk_size=chunk_size, chunk_overlap=0, length_function=length_function
                )

        assert Fixed(chunk_size=5)._chunk_size == 5
        if base is kind:  # LangChain downloads the encoding
            splitter = Fixed.from_tiktoken_encoder("o200k_base", chunk_size=7)
            assert (splitter._chunk_size, splitter.length_function) == (7, "tokens:o200k_base")
            with pytest.raises(ValueError, match="pass length_function or encoding_name, not both"):
                Fixed.from_tiktoken_encoder(length_function=len)


def test_separators_for_a_language_of_a_subclass_are_used() -> None:
    for base in (RecursiveCharacterTextSplitter, RecursiveTextSplitter):

        class Laws(base):  # type: ignore[misc, valid-type]
            @staticmethod
            def get_separators_for_language(language: Any) -> list[str]:
                return [r"\n§ \d", " "]

        laws = Laws.from_language("laws", chunk_size=16, chunk_overlap=0)
        assert laws.split_text("§ 1 Tea is hot.\n§ 2 Milk.") == ["§ 1 Tea is hot.", "§ 2 Milk."]


def test_separators_are_assigned_by_a_subclass() -> None:
    class Semicolons(RecursiveTextSplitter):
        def __init__(self, **parameters: Any) -> None:
            super().__init__(**parameters)
            self._separators = [";", ""]

    class Commas(SeparatorTextSplitter):
        def __init__(self, **parameters: Any) -> None:
            super().__init__(**parameters)
            self._separator = ","

    assert Semicolons(chunk_size=4).split_text("a b;c d") == ["a b;", "c d"]
    assert Semicolons()._separators == [";", ""]
    assert Commas(chunk_size=3).split_text("a b,c d") == ["a b", "c d"]
    assert Commas()._separator == ","


# Positional arguments


@pytest.mark.parametrize(
    ("by_position", "by_name"),
    [
        (RecursiveTextSplitter(["\n"]), RecursiveTextSplitter(separators=["\n"])),
        (
            RecursiveTextSplitter([r"\d"], False, True),
            RecursiveTextSplitter(separators=[r"\d"], keep_separator=False, is_regex=True),
        ),
        (SeparatorTextSplitter(";"), SeparatorTextSplitter(separators=[";"])),
        (
            SeparatorTextSplitter(r"\d", True),
            SeparatorTextSplitter(separators=[r"\d"], is_regex=True),
        ),
        (
            ours.TokenTextSplitter("o200k_base"),
            ours.TokenTextSplitter(length_function="tokens:o200k_base"),
        ),
        (
            ours.TokenTextSplitter("gpt2", "gpt-4o"),
            ours.TokenTextSplitter(length_function="tokens:gpt-4o"),
        ),
    ],
    ids=lambda splitter: type(splitter).__name__,
)
def test_positional_arguments_are_in_langchains_order(by_position: Any, by_name: Any) -> None:
    assert by_position == by_name


def test_embeddings_are_positional() -> None:
    model = HashingEmbeddings()
    for kind in (SemanticTextSplitter, ours.EmbeddingTextSplitter, ours.ClusterTextSplitter):
        assert kind(model) == kind(embeddings=model)
    semantic: Any = SemanticTextSplitter
    assert semantic(model, 2, False, "interquartile", 1.4, None) == SemanticTextSplitter(
        embeddings=model,
        buffer_size=2,
        add_start_index=False,
        breakpoint_threshold_type="interquartile",
        breakpoint_threshold_amount=1.4,
    )
    assert semantic(model, min_chunk_size=None) == semantic(model)


# keep_separator, strip_whitespace


@pytest.mark.parametrize("strip", [True, False], ids=["stripped", "unstripped"])
@pytest.mark.parametrize("side", [False, "start", "end"], ids=str)
@pytest.mark.parametrize(
    ("text", "separators", "size"),
    [
        (FAQ, {"separators": ["Q: ", ""]}, 30),
        (FAQ, {"separators": ["Q: ", "A: ", " "]}, 25),
        (NOTES, {"separators": ["## ", "\n", " ", ""]}, 46),
        (NOTES, {"separators": ["\n## ", "\n\n", ". "]}, 47),
        ("one|two|three||four", {"separators": ["|"]}, 8),
        ("....5X..3Y...4X....5Y...", {"separators": ["X", "Y"]}, 6),
        ("foo bar baz 123", {"separator": " "}, 8),
        ("One two.\nThree four. Five.", {"separator": ""}, 18),
        (NOTES, {"separator": "\n"}, 40),
        (FAQ, {"separator": "Q: "}, 50),
        ("one;two;three;", {"separator": ";"}, 8),
        ("one;two;three;", {"separator": ";"}, 100),
        (
            "SCE191 First part. SCE103 Second part.",
            {"separator": r"(?=SCE\d{3})", "is_separator_regex": True},
            20,
        ),
    ],
)
def test_separators_go_where_langchain_puts_them(
    text: str, separators: dict[str, Any], size: int, side: Any, strip: bool
) -> None:
    sizes = {"chunk_size": size, "chunk_overlap": 0}
    options: dict[str, Any] = {**separators, **sizes, "keep_separator": side}
    theirs, kind = PAIRS["separator" in separators]
    expected = texts(theirs(**options, strip_whitespace=strip), text)
    if kind is RecursiveTextSplitter:  # ours makes no blank chunk
        expected = [each for each in expected if each.strip()]
    assert texts(kind(**options, strip_whitespace=strip), text) == expected


def test_visible_separator_begins_the_next_chunk_unless_it_is_punctuation() -> None:
    options: dict[str, Any] = {"separators": ["Q: "], "chunk_size": 46, "chunk_overlap": 0}
    expected = texts(RecursiveCharacterTextSplitter(**options), FAQ)
    assert [text[:5] for text in expected] == ["Intro", "Q: Wh"]
    assert texts(RecursiveTextSplitter(**options), FAQ) == expected
    prose = RecursiveTextSplitter(separators=[". ", " "], chunk_size=20)
    assert prose.split_text("Rain fell on it. It was cold. No.") == [
        "Rain fell on it.",
        "It was cold. No.",
    ]


def test_separators_that_are_kept_begin_a_piece() -> None:
    for kind in (RecursiveTextSplitter, SeparatorTextSplitter):
        options: dict[str, Any] = {"separators": ["Q: "], "chunk_size": 46}
        true, start = (kind(**options, keep_separator=side) for side in (True, "start"))
        assert true.split_text(FAQ) == start.split_text(FAQ)
        assert true.split_text(FAQ)[1].startswith("Q: ")


def test_unstripped_chunks_are_the_whole_text() -> None:
    for side in ("auto", "start", "end"):
        splitter = RecursiveTextSplitter(
            chunk_size=50, strip_whitespace=False, keep_separator=side, add_start_index=False
        )
        assert "".join(texts(splitter, NOTES + FAQ)) == NOTES + FAQ


def test_piece_that_is_too_big_is_cut_where_langchain_only_warns() -> None:
    text = "short\n\nA piece of far too many words for one chunk.\n\nshort"
    theirs = CharacterTextSplitter(chunk_size=20, chunk_overlap=0)
    assert max(map(len, theirs.split_text(text))) > 20
    assert SeparatorTextSplitter(chunk_size=20).split_text(text) == [
        "short",
        "A piece of far too",
        "many words for one",
        "chunk.\n\nshort",
    ]


# encoding_name=, model_name=


def test_tokenizer_is_taken_by_name() -> None:
    kind: Any = RecursiveTextSplitter
    assert kind(encoding_name="o200k_base").length_function == "tokens:o200k_base"
    assert kind(encoding_name="gpt2", model_name="gpt-4o").length_function == "tokens:gpt-4o"
    assert kind.from_tiktoken_encoder(model_name="gpt-4o", chunk_size=9).chunk_size == 9
    with pytest.raises(ValueError, match="pass length_function or encoding_name, not both"):
        kind(encoding_name="o200k_base", length_function=len)


@pytest.mark.parametrize("kind", [RecursiveTextSplitter, ours.TokenTextSplitter])
def test_gpt2_is_never_downloaded(kind: Any, monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(ValueError, match="the file of the encoding 'gpt2' is not on this machine"):
        kind(encoding_name="gpt2", chunk_size=5).split_text("one two")


# Options that a strategy does not have, and misspelt ones


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (RecursiveTextSplitter, {"separator": "x", "separators": ["y"]}, "separators or separator"),
        (SeparatorTextSplitter, {"separator": "x", "separators": ["y"]}, "separators or separator"),
        (SentenceTextSplitter, {"pipeline": "en"}, 'pass segmenter="spacy:<pipeline>"'),
        (SentenceTextSplitter, {"keep_separator": "end"}, "this strategy has no separators"),
        (ours.TokenTextSplitter, {"keep_separator": False}, "this strategy has no separators"),
        (SentenceTextSplitter, {"separator": " "}, "keeps what is between its sentences"),
        (SentenceTextSplitter, {"language": "german"}, "segmenter=PunktTokenizer(language)"),
        (SentenceTextSplitter, {"max_length": 100}, "texts of any length"),
        (ours.TokenTextSplitter, {"tokens_per_chunk": 3}, "pass chunk_size"),
        (
            ours.HierarchicalTextSplitter,
            {"headers_to_split_on": [("#", "h")]},
            'write them to metadata["headings"]',
        ),
        (SeparatorTextSplitter, {"chunk_size": None, "chunk_overlap": 3}, "needs a chunk_size"),
        (ours.TokenTextSplitter, {"allowed_special": "all"}, "special tokens are ordinary text"),
    ],
)
def test_error_names_our_parameter(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        kind(**options)
    assert "pydantic" not in str(raised.value)


def test_defaults_of_langchains_sentence_splitters_are_taken() -> None:
    text = "One. Two.\n\nThree."
    splitter = SentenceTextSplitter(separator="\n\n", language="english", chunk_size=10)
    expected = SentenceTextSplitter(chunk_size=10).split_text(text)
    assert splitter.split_text(text) == expected


def test_json_is_also_taken_as_data() -> None:
    data: dict[str, Any] = {"tea": [{"kind": "grün", "minutes": n} for n in range(5)]}
    splitter = ours.JsonTextSplitter(chunk_size=60)
    text = json.dumps(data, ensure_ascii=False)
    assert splitter.split_text(data) == splitter.split_text(text)
    taken = splitter.create_documents([data, data["tea"]], [{"a": 1}, {}])
    assert taken == splitter.create_documents(
        [text, json.dumps(data["tea"], ensure_ascii=False)], [{"a": 1}, {}]
    )
    first = taken[0]
    start, end = first.metadata["start_index"], first.metadata["end_index"]
    assert first.page_content == text[start:end]
    for call in (lambda: splitter.split_text(3), lambda: splitter.create_documents([3])):
        with pytest.raises(TypeError, match="must be a string"):
            call()


def test_windows_of_tokens_are_langchains(monkeypatch: Any) -> None:
    folder = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    options: dict[str, Any] = {"encoding_name": "cl100k_base", "chunk_size": 3, "chunk_overlap": 0}
    text = "Tokens are not words, they say."
    expected = TokenTextSplitter(**options).split_text(text)
    assert ours.TokenTextSplitter(**options).split_text(text) == expected


# The migration page

PAGE = Path(__file__).parents[2].joinpath("docs/migration/langchain.md").read_text("utf-8")


def test_migration_page_has_every_splitter_of_langchain() -> None:
    splitters = {name for name in langchain_text_splitters.__all__ if name.endswith("Splitter")}
    missing = {name for name in splitters - {"TextSplitter"} if f"`{name}(" not in PAGE}
    assert not missing


def test_code_of_the_migration_page_runs() -> None:
    rows = PAGE.partition("## What to write")[2].partition("\n## ")[0].splitlines()
    code = [
        call.replace(", ...", "").replace("...", "")
        for row in rows
        for call in re.findall(r"`(\w+TextSplitter[^`]*\))`", row.rpartition("` | ")[2])
    ]
    assert len(code) > 15
    names = vars(ours) | {
        "AutoTokenizer": SimpleNamespace(from_pretrained=lambda name: str.split),
        "Language": Language,
        "PunktTokenizer": lambda language: SimpleNamespace(span_tokenize=str.split),
        "data": {"key": "value"},
        "embeddings": HashingEmbeddings(),
        "json": json,
        "name": "a-model",
    }
    for call in code:
        assert eval(call, {**names}), call


# What replaces CharacterTextSplitter and SemanticChunker


@pytest.mark.parametrize("separator", [r"\.", "."])
@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("start", ["foo", ".bar", ".baz", ".123"]),
        ("end", ["foo.", "bar.", "baz.", "123"]),
        (False, ["foo", "bar", "baz", "123"]),
    ],
)
def test_size_of_one_keeps_pieces_as_in_langchain(separator: str, keep: Any, expected: Any) -> None:
    options: dict[str, Any] = {
        "separator": separator,
        "is_separator_regex": separator != ".",
        "keep_separator": keep,
        "chunk_size": 1,
    }
    text = "foo.bar.baz.123"
    for overlap in (0, 1):
        splitter = SeparatorTextSplitter(chunk_overlap=overlap, **options)
        assert splitter.split_text(text) == expected
        theirs = CharacterTextSplitter(chunk_overlap=overlap, **options)
        assert theirs.split_text(text) == expected
        documents = splitter.create_documents([text])
        assert [text[d.metadata["start_index"] :][:2] for d in documents] == [
            each[:2] for each in expected
        ]


def test_size_of_one_is_a_size_in_other_units_and_between_characters() -> None:
    words = SeparatorTextSplitter(separator=";", chunk_size=1, length_function="words")
    assert words.split_text("one two; three") == ["one", "two", "three"]
    assert SeparatorTextSplitter(separator="", chunk_size=1).split_text("abc") == ["a", "b", "c"]


SENTENCES = (
    "The bus left the station late again this morning. Nobody on the bus complained about it. "
    "Tea grows on steep hills in Assam. Pickers carry the leaves down at noon. "
    "A comet has a tail of dust and gas. Its core is a few miles of dirty ice."
)


@pytest.mark.parametrize("number", range(4, 7))
@pytest.mark.parametrize("kind", ["percentile", "gradient"])
def test_semantic_segments_are_as_many_as_langchains(number: int, kind: Any) -> None:
    """A percentile of n - 1 distances leaves a number of breaks that does not depend on them."""
    text = " ".join(re.split(r"(?<=\.) ", SENTENCES)[:number])
    for amount in (0.0, 50.0, 80.0):
        splitter = ours.SemanticTextSplitter(
            HashingEmbeddings(dimensions=64),
            0,
            breakpoint_threshold_type=kind,
            breakpoint_threshold_amount=amount,
            sentence_split_regex=r"(?<=[.?!])\s+",
        )
        distances = number - 1
        breaks = distances - 1 - math.floor((distances - 1) * amount / 100)
        assert len(splitter.split_text(text)) == breaks + 1


@pytest.mark.parametrize("number", [1, 2, 5, 12])
def test_number_of_chunks_is_exact_also_among_equal_distances(number: int) -> None:
    text = "The cat slept on the sofa. The council raised the tax. " * 10
    splitter = ours.SemanticTextSplitter(HashingEmbeddings(), 0, number_of_chunks=number)
    assert len(splitter.split_text(text)) == number


def test_semantic_segments_are_merged_only_on_request() -> None:
    options: dict[str, Any] = {"breakpoint_threshold_amount": 0, "buffer_size": 0}
    splitter = ours.SemanticTextSplitter(HashingEmbeddings(dimensions=64), **options)
    lengths = [len(each) for each in splitter.split_text(SENTENCES)]
    assert len(lengths) == 5  # all but the smallest of five distances are above it
    merged = ours.SemanticTextSplitter(
        HashingEmbeddings(dimensions=64), min_chunk_size=60, **options
    )
    pieces = merged.split_text(SENTENCES)
    assert 1 < len(pieces) < len(lengths)
    assert all(len(each) >= 60 for each in pieces[:-1])
    sized = ours.SemanticTextSplitter(HashingEmbeddings(dimensions=64), chunk_size=60)
    assert all(len(each) <= 60 for each in sized.split_text(SENTENCES))


def test_invalid_expression_between_sentences_is_refused() -> None:
    with pytest.raises(ValueError, match=r"segmenter '\(' is not a valid regular expression"):
        ours.SemanticTextSplitter(HashingEmbeddings(), sentence_split_regex="(")


def test_attributes_of_a_subclass_may_have_names_of_langchain_options() -> None:
    class Own(SentenceTextSplitter):
        def __init__(self, **parameters: Any) -> None:
            super().__init__(**parameters)
            self.pipeline, self.keep_separator, self.max_chunk_size = None, True, 3

    splitter = Own()
    assert (splitter.pipeline, splitter.keep_separator, splitter.max_chunk_size) == (None, True, 3)
    SentenceTextSplitter().keep_separator = True  # type: ignore[attr-defined]  # it has no effect
