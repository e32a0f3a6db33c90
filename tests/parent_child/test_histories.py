"""Any history of an index: whatever failed, it holds what was last added."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from chromadb import Collection
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from rag_splitters.models import HashingEmbeddings
from rag_splitters.parent_child.stores.keyvalue import SQLiteStore
from tests.support.front_ends import FRONT_ENDS, Page, sentence

REQUESTS: list[tuple[type, str]] = [
    (Collection, name) for name in ("get", "upsert", "update", "delete")
]
REQUESTS += [(SQLiteStore, name) for name in ("_read", "_change")]
FRAGMENTS = [*map(sentence, range(4)), *map("# Part {}\n\n".format, range(2)), "A\ud800\r\n\0B. "]
METADATA = [{}, {"source": "a"}, {"source": "b", "page": 2}, {"title": "T", "tags": [{"x": None}]}]
TEXTS = st.lists(
    st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from([1, 9])), min_size=1, max_size=4
).map(lambda parts: "".join(f"{fragment} " * times for fragment, times in parts))
NAMES = st.sampled_from(["a", "b", "https://c.d/e?f=g h"])
PAGES = st.lists(
    st.tuples(NAMES, TEXTS, st.sampled_from(METADATA)), max_size=3, unique_by=lambda page: page[0]
)
FAULTS = st.none() | st.tuples(st.integers(0, 14), st.booleans(), st.booleans())
"""The number of the request that fails, whether it has an effect all the same, and whether the user
then does the same again, instead of a repair."""


class RequestFailedError(Exception):
    """What a store raises at the request that is to fail."""


@contextmanager
def failing(number: int, has_effect: bool) -> Iterator[None]:
    """Fail at the request of this number, and at all that follow."""
    count = iter(range(1000))

    def replaced(owner: type, name: str) -> Any:
        request = getattr(owner, name)

        def fail(self: Any, *args: Any, **kwargs: Any) -> Any:
            is_over = next(count) >= number
            result = request(self, *args, **kwargs) if has_effect or not is_over else None
            if is_over:
                raise RequestFailedError
            return result

        return patch.object(owner, name, fail)

    patches = [replaced(owner, name) for owner, name in REQUESTS]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


class Histories(RuleBasedStateMachine):
    """An index in a folder, which the front ends open in turn, and what it must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.pages: dict[str, tuple[str, dict[str, Any]]] = {}
        self.open(0, headings=True, smoothing=0.6)

    def open(self, number: int, **options: Any) -> None:
        self.front = FRONT_ENDS[number]
        self.retriever = self.front.build(
            path=self.folder, embeddings=HashingEmbeddings(dimensions=16), **options
        )

    def teardown(self) -> None:
        self.retriever.close()
        shutil.rmtree(self.folder)

    def change(
        self, new: dict[str, Any], work: Callable[[], object], fault: tuple[int, bool, bool] | None
    ) -> None:
        """Do what makes some pages new, or removes those that are None; then see it finished."""
        try:
            if fault is None:
                work()
            else:
                with failing(*fault[:2]):
                    work()
        except RequestFailedError:
            if fault and fault[2]:
                work()
            else:
                self.front.do(self.retriever, "verify", repair=True)
                read = {name: self.read(name) for name in new}
                for name, page in read.items():
                    assert page in (self.pages.get(name), new[name])
                new = read
        self.pages = {k: page for k, page in (self.pages | new).items() if page is not None}

    def read(self, name: str) -> tuple[str, dict[str, Any]] | None:
        for document in self.front.do(self.retriever, "get", [name]):
            text = "page_content" if self.front.framework == "langchain" else "text"
            return getattr(document, text), document.metadata
        return None

    @rule(pages=PAGES, fault=FAULTS)
    def add(self, pages: list[Page], fault: Any) -> None:
        self.add_pages(pages, fault)

    def add_pages(self, pages: list[Page], fault: Any) -> None:
        new = {name: (text, metadata) for name, text, metadata in pages}
        documents = self.front.documents(pages)
        self.change(new, partial(self.front.do, self.retriever, "add_documents", documents), fault)

    @rule(name=NAMES, text=TEXTS, at=st.integers(0, 900), fault=FAULTS)
    def edit(self, name: str, text: str, at: int, fault: Any) -> None:
        if name in self.pages:
            old, metadata = self.pages[name]
            self.add_pages([(name, old[:at] + text + old[at:], metadata)], fault)

    @rule(pages=PAGES, fault=FAULTS)
    def sync(self, pages: list[Page], fault: Any) -> None:
        new = dict.fromkeys(self.pages) | {name: (text, own) for name, text, own in pages}
        documents = self.front.documents(pages)
        self.change(new, partial(self.front.do, self.retriever, "sync", documents), fault)

    @rule(names=st.sets(NAMES, min_size=1), fault=FAULTS)
    def delete(self, names: set[str], fault: Any) -> None:
        work = partial(self.front.delete, self.retriever, sorted(names))
        self.change(dict.fromkeys(names), work, fault)

    @rule(
        number=st.integers(0, 3), headings=st.booleans(), smoothing=st.sampled_from([0.6, 0.6, 0.0])
    )
    def reopen(self, number: int, **options: Any) -> None:
        self.retriever.close()
        self.open(number, **options)

    @rule()
    def find(self) -> None:
        hybrid = self.front.varied(self.retriever, search_type="hybrid", k=20)
        texts = [result.text for result in self.front.find(hybrid, sentence(1))]
        assert any(sentence(1) in text for text, _ in self.pages.values()) <= any(
            sentence(1) in text for text in texts
        )

    @invariant()
    def holds_what_was_added(self) -> None:
        assert self.front.do(self.retriever, "list_ids") == sorted(self.pages)
        for name, page in self.pages.items():
            assert self.read(name) == page
        report = self.front.do(self.retriever, "verify")
        assert report.is_sound, report


@pytest.mark.slow
def test_an_index_holds_what_was_last_added_whatever_fails() -> None:
    count = min(max(3, settings().max_examples // 5), 100)
    run_state_machine_as_test(
        Histories, settings=settings(max_examples=count, stateful_step_count=15)
    )
