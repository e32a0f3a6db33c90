"""Parent-child retrieval when a store fails: nothing is half visible, and a retry completes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter

from rag_splitters.langchain import ParentDocumentRetriever
from rag_splitters.models import HashingEmbeddings


class Fuse:
    """Raises at one of the store calls that change something, before it or half way through it."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.calls = 0

    def pass_on(self, write: Callable[[Any], Any], items: Any) -> Any:
        self.calls += 1
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                half = len(items) // 2
                self.left = None
                if half:
                    write(items[:half])
                raise ConnectionError("the store is gone")
        return write(items)


class FailingVectorStore(InMemoryVectorStore):
    """A vector store on a network that fails."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__(HashingEmbeddings(dimensions=64))  # type: ignore[arg-type]
        self.fuse = fuse

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        kwargs.pop("ids")
        return self.fuse.pass_on(super().add_documents, documents)

    def delete(self, ids: Any = None, **kwargs: Any) -> None:
        self.fuse.pass_on(super().delete, ids)


class FailingStore(InMemoryStore):
    """A docstore on a network that fails."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self.fuse = fuse

    def mset(self, key_value_pairs: Any) -> None:
        self.fuse.pass_on(super().mset, key_value_pairs)

    def mdelete(self, keys: Any) -> None:
        self.fuse.pass_on(super().mdelete, keys)


def document(name: str, count: int, **metadata: Any) -> Document:
    paragraphs = [" ".join(f"{name}{p}word{w}" for w in range(6)) for p in range(count)]
    return Document(page_content="\n\n".join(paragraphs), metadata=metadata, id=name)


OLD = [document("a", 6, page=1), document("b", 2), document("c", 3)]
NEW = [document("a", 4, page=2), document("b", 2), document("c", 5), document("d", 2)]


def build() -> tuple[ParentDocumentRetriever, Fuse]:
    fuse = Fuse()
    split = {"separator": " ", "chunk_overlap": 0}
    retriever = ParentDocumentRetriever(
        vectorstore=FailingVectorStore(fuse),
        docstore=FailingStore(fuse),
        child_splitter=CharacterTextSplitter(**split, chunk_size=25),
        parent_splitter=CharacterTextSplitter(**{**split, "separator": "\n\n"}, chunk_size=80),
    )
    return retriever, fuse


def state(retriever: ParentDocumentRetriever) -> tuple[Any, Any]:
    """What the stores hold, but for the index's own rows."""
    rows = retriever.docstore.store  # type: ignore[attr-defined]
    parents = {key: copy.deepcopy(row) for key, row in rows.items() if key[:6] != "state/"}
    return parents, retriever.vectorstore.store  # type: ignore[attr-defined]


def assert_no_orphans(retriever: ParentDocumentRetriever) -> None:
    parents, children = state(retriever)
    kinds = ("children", "other_children")
    listed = {i for row in parents.values() for kind in kinds for i in row.metadata.get(kind, ())}
    assert children.keys() <= listed, "a child that no record lists could never be removed"


def found(retriever: ParentDocumentRetriever) -> set[str]:
    return {result.page_content for result in retriever.invoke("a0word0 a0word1", k=50)}


OPERATIONS: dict[str, Callable[[ParentDocumentRetriever], Any]] = {
    "replace": lambda retriever: retriever.add_documents(NEW),
    "delete": lambda retriever: retriever.delete(["a", "c", "missing"]),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
@pytest.mark.parametrize("before", [[], OLD], ids=["empty", "filled"])
@pytest.mark.parametrize("is_followed", [False, True], ids=["repeated", "another version"])
def test_a_failed_operation_leaves_no_orphan_and_the_next_one_completes(
    operation: Callable[[ParentDocumentRetriever], Any], before: list[Document], is_followed: bool
) -> None:
    """The next one is the same again, or adds another version."""

    def prepared() -> tuple[ParentDocumentRetriever, Fuse]:
        retriever, fuse = build()
        retriever.add_documents(before)
        fuse.calls = 0
        return retriever, fuse

    def go_on(retriever: ParentDocumentRetriever) -> None:
        if is_followed:
            retriever.add_documents([*OLD, document("d", 1)])
        else:
            operation(retriever)

    undisturbed, fuse = prepared()
    old = found(undisturbed)
    operation(undisturbed)
    new, calls = found(undisturbed), fuse.calls
    go_on(undisturbed)
    assert_no_orphans(undisturbed)
    for failing in range(calls):
        retriever, broken = prepared()
        broken.left = failing
        with pytest.raises(ConnectionError):
            operation(retriever)
        assert_no_orphans(retriever)
        assert old & new <= found(retriever) <= old | new
        ids = retriever.list_ids()
        assert [each.id for each in retriever.get(ids)] == ids
        go_on(retriever)
        assert state(retriever) == state(undisturbed)
