"""ContextualChunker: a context before every chunk, each paid for once."""

from __future__ import annotations

import asyncio
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies
from langchain_core.stores import InMemoryStore

from rag_splitters import HybridChunker, PageChunker, RecursiveChunker, SentenceChunker
from rag_splitters.calls import run
from rag_splitters.chunkers.contextual import ContextualChunker
from rag_splitters.llama_index import ContextualNodeParser
from rag_splitters.meaning.situating import window_around
from rag_splitters.models import ModelError
from rag_splitters.models.cache import FolderCache, text_cache
from rag_splitters.testing import hostile_texts
from tests.structure.test_blocks import many
from tests.support.chat_doubles import AsyncFunction, Function, LangChainDouble, LlamaIndexDouble
from tests.support.checks import check_chunker
from tests.support.splitting import asplit_texts, split_texts

TEXT = "# Tea\n\nIt is hot.\n\n## Green\n\nIt is not so hot."
SMALL = RecursiveChunker(chunk_size=20)


def chunk_in(prompt: str) -> str:
    """The chunk that a prompt asks about."""
    return prompt.rpartition("<chunk>\n")[2].rpartition("\n</chunk>")[0]


def about(prompt: str) -> str:
    """A context that depends on the chunk alone."""
    return f"A part of {len(chunk_in(prompt))} characters, of some document or other."


def fails_on_green(prompt: str) -> str:
    if "Green" in chunk_in(prompt):
        raise RuntimeError("no answer today")
    return about(prompt)


INNER = [
    RecursiveChunker(),
    RecursiveChunker(chunk_size=20, chunk_overlap=6),
    RecursiveChunker(chunk_size=60, chunk_overlap=9),
    SentenceChunker(chunk_size=9, length_function="words"),
    SentenceChunker(chunk_size=24, chunk_overlap=5, length_function="tokens"),
    HybridChunker(stages=[PageChunker(), RecursiveChunker(chunk_size=40)]),
]


@many
@example(inner=INNER[4], count=False, text="a \ra👩\u200d👩\u200d👧a<|endoftext|>")
@given(
    inner=strategies.sampled_from(INNER),
    count=strategies.booleans(),
    text=hostile_texts(),
)
def test_contextual_keeps_the_guarantees(inner: Any, count: bool, text: str) -> None:
    chunker = ContextualChunker(chunker=inner, llm=about, count_context=count, document_window=50)
    spans = check_chunker(chunker, text)
    for span in spans:
        own = text[span.start : span.end]
        context = span.context
        assert span.text_of(text) == (own if context is None else f"{context}\n\n{own}")
        assert (span.context is not None) == (span.content is not None)
    if not count:
        assert [(s.start, s.end) for s in spans] == [(s.start, s.end) for s in inner.spans(text)]


@given(text=hostile_texts())
def test_contextual_loses_no_chunk_when_the_model_fails(text: str) -> None:
    def moody(prompt: str) -> str:
        return "" if "word" in chunk_in(prompt) else about(prompt)

    chunker = ContextualChunker(
        chunker=SMALL, llm=moody, max_retries=0, on_error="plain", count_context=False
    )
    spans = check_chunker(chunker, text)
    for span in spans:
        failed = "word" in text[span.start : span.end]
        assert span.metadata.get("fallback") == ("plain" if failed else None)
        assert (span.context is not None) is not failed


@pytest.mark.parametrize("kind", [Function, AsyncFunction, LangChainDouble, LlamaIndexDouble])
def test_every_kind_of_model_gives_the_same_contexts(kind: Any) -> None:
    llm = kind(script=about)
    chunker = ContextualChunker(chunker=SMALL, llm=llm, count_context=False)
    spans = chunker.spans(TEXT)
    assert [span.text_of(TEXT) for span in spans] == [
        f"A part of {len(part)} characters, of some document or other.\n\n{part}"
        for part in ("# Tea\n\nIt is hot.", "## Green", "It is not so hot.")
    ]
    assert len(llm.prompts) == 3
    assert asyncio.run(asplit_texts(chunker, [TEXT, "", TEXT])) == [spans, [], spans]
    assert len(llm.prompts) == 6  # the same document twice: asked once


@pytest.mark.parametrize("size", [1, 7, 100, 2000, 10**6])
@pytest.mark.parametrize("text", ["A sentence of words. " * 300, "x" * 5000, "日本" * 2000])
def test_windows_hold_their_chunk_and_are_shared(text: str, size: int) -> None:
    spans = RecursiveChunker(chunk_size=40).spans(text)
    found = [window_around(text, span, size) for span in spans]
    for span, (start, end) in zip(spans, found, strict=True):
        assert 0 <= start <= span.start < span.end <= end <= len(text)
        assert end - start <= max(size, 40) + 40
        if 200 <= size < len(text):
            assert end - start >= size - 200
    if size >= 100:
        assert len(set(found)) <= 2 * len(text) / size + 2


def test_long_document_costs_in_proportion_to_its_window() -> None:
    llm = Function(about)
    text = "".join(f"Sentence {number} of a long document. " for number in range(20_000))
    spans = ContextualChunker(llm=llm).spans(text)
    assert len(llm.prompts) == len(spans)
    assert max(map(len, llm.prompts)) < 8_000 + 1000 + 1000
    documents = {prompt.partition("</document>")[0] for prompt in llm.prompts}
    assert len(documents) <= 2 * len(text) / 8_000 + 2


def test_same_chunk_in_the_same_window_is_asked_once() -> None:
    llm = Function(about)
    text = "The same passage again.\n\n" * 40
    spans = ContextualChunker(chunker=RecursiveChunker(chunk_size=25), llm=llm).spans(text)
    assert len(spans) == 40
    assert len(llm.prompts) == 1


def test_cache_pays_again_for_what_changed_alone(tmp_path: Path) -> None:
    llm = Function(about)
    chunker = ContextualChunker(chunker=SMALL, llm=llm, cache=tmp_path)
    edited = TEXT.replace("not so hot", "rather cool")

    def calls(chunker: ContextualChunker, text: str) -> int:
        before = len(llm.prompts)
        chunker.spans(text)
        return len(llm.prompts) - before

    assert calls(chunker, TEXT) == 3
    # Other cuts of the same document: the chunks that are the same cost nothing.
    finer = chunker.model_copy(update={"chunker": RecursiveChunker(chunk_size=17)})
    assert calls(finer, TEXT) == 0
    finest = chunker.model_copy(update={"chunker": RecursiveChunker(chunk_size=16)})
    assert calls(finest, TEXT) == 4
    # An edit changes what the model is shown, so all chunks of the window are asked about ...
    assert calls(chunker, edited) == 3
    # ... but not where the context of an unchanged chunk may be kept.
    lasting = chunker.model_copy(update={"cache_by": "chunk"})
    assert calls(lasting, TEXT) == 3
    assert calls(lasting, edited) == 1
    assert calls(lasting, TEXT.replace("# Tea", "# Coffee")) == 3
    assert calls(chunker.model_copy(update={"prompt": "{document} {chunk}"}), TEXT) == 3


def test_contexts_in_the_cache_are_read_once() -> None:
    llm, store = Function(about), InMemoryStore()
    chunker = ContextualChunker(chunker=SMALL, llm=llm, cache=store)
    spans = chunker.spans(TEXT)
    counted = []
    mget = store.mget
    store.mget = lambda keys: counted.extend(keys) or mget(keys)  # type: ignore[method-assign]
    assert chunker.spans(TEXT) == spans
    assert len(counted) == len(set(counted)) == len(llm.prompts) == 3


def test_error_names_document_and_chunk_and_keeps_the_rest(tmp_path: Path) -> None:
    llm = Function(fails_on_green)
    chunker = ContextualChunker(chunker=SMALL, llm=llm, cache=tmp_path)
    with pytest.raises(ModelError, match="no answer today") as caught:
        split_texts(chunker, ["Fine.", TEXT])
    assert "ContextualChunker: document 1, chunk 1 (characters 19 to 27)" in str(caught.value)
    assert caught.value.index == 1
    assert len(llm.prompts) == 4
    llm.script = about
    assert len(split_texts(chunker, ["Fine.", TEXT])[1]) == 3
    assert len(llm.prompts) == 5  # only what had failed


def test_after_a_failure_the_others_are_finished_and_kept(tmp_path: Path) -> None:
    text = "".join(f"Part {number} of it all.\n\n" for number in range(300))
    llm = Function(lambda prompt: "" if "Part 7 " in chunk_in(prompt) else about(prompt))
    inner = RecursiveChunker(chunk_size=25)
    chunker = ContextualChunker(
        chunker=inner, llm=llm, cache=tmp_path, max_retries=1, document_window=100
    )
    with pytest.raises(ModelError, match="chunk 7 "):
        chunker.spans(text)
    assert len(llm.prompts) == 301
    plain = chunker.model_copy(update={"on_error": "plain"})
    spans = plain.spans(text)
    assert len(spans) == 300
    assert [span.metadata.get("fallback") for span in spans].index("plain") == 7
    assert len(llm.prompts) == 303


@pytest.mark.parametrize(("inner", "share"), [(RecursiveChunker(chunk_size=300), 3)])
def test_counted_context_fits_and_uses_its_room(inner: RecursiveChunker, share: int) -> None:
    text = "A sentence of some words. " * 100
    llm = Function(lambda prompt: "Some context, in words, " * 50)
    counted = ContextualChunker(chunker=inner, llm=llm)
    for span in counted.spans(text):
        assert counted.fits(span.text_of(text))
        assert len(span.context) > inner.chunk_size / share - 30
        assert span.context.split()[-1] in ("Some", "context,", "in", "words,")
    free = ContextualChunker(chunker=inner, llm=llm, count_context=False)
    assert all(len(span.text_of(text)) > inner.chunk_size for span in free.spans(text))


def test_counted_context_in_a_script_without_spaces_is_shortened_too() -> None:
    chunker = ContextualChunker(
        chunker=RecursiveChunker(chunk_size=60),
        llm=lambda prompt: "日本語" * 50,
    )
    spans = check_chunker(chunker, "他说。" * 50)
    assert all(len(span.context) >= 10 for span in spans)


def test_inner_chunkers_metadata_and_place_are_kept() -> None:
    inner = HybridChunker(stages=[PageChunker(), SMALL])
    spans = ContextualChunker(chunker=inner, llm=about).spans("One.\fTwo.")
    assert [(s.start, s.end, s.pages) for s in spans] == [(0, 4, (1, 1)), (5, 9, (2, 2))]


def test_secrets_and_stores_stay_out_of_what_is_written(tmp_path: Path) -> None:
    store = InMemoryStore()
    parser = ContextualNodeParser(llm=LangChainDouble(script=about), cache=store)
    for shown in (repr(parser), json.dumps(parser.to_dict(), default=str)):
        assert "secret" not in shown
        assert "InMemoryStore" not in shown
    with pytest.raises(TypeError, match="cannot be pickled because of cache"):
        pickle.dumps(ContextualNodeParser(llm=about, cache=store))
    with pytest.raises(TypeError, match="pass the path of a folder"):
        pickle.dumps(ContextualChunker(llm=about, cache=store))
    kept = ContextualNodeParser(llm=about, cache=tmp_path, chunker=SMALL)
    assert str(tmp_path) not in str(kept.to_dict())
    read = ContextualNodeParser.from_dict(kept.to_dict(), llm=about, cache=tmp_path)
    for again in (pickle.loads(pickle.dumps(kept)), read):
        assert again.cache == kept.cache == FolderCache(str(tmp_path))
        assert again.spans(TEXT) == kept.spans(TEXT)
    assert parser.model_copy(deep=True).cache == parser.cache


def test_cache_passes_over_what_is_no_context(tmp_path: Path) -> None:
    store = InMemoryStore()
    store.mset([("blank", " "), ("number", 3), ("broken", b"\xff\xfe"), ("good", b"Context.")])
    keys = ["blank", "number", "broken", "missing", "good"]
    assert run(text_cache(store).read(keys)) == [None, None, None, None, "Context."]
    folder = FolderCache(str(tmp_path))
    pairs = [(f"key {number}", f"Context \ud800 {number}") for number in range(1200)]
    run(folder.write(pairs))
    run(folder.write(pairs[:1]))
    assert run(folder.read([key for key, _ in pairs])) == [context for _, context in pairs]
