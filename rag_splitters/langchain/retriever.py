"""Parent-child retrieval for LangChain: the retriever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex
from langchain_core.stores import BaseStore, ByteStore
from langchain_core.vectorstores import VectorStore
from langchain_text_splitters import TextSplitter
from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator
from typing_extensions import Self, override

from rag_splitters.langchain.children import children_in, chroma_collection
from rag_splitters.langchain.passages import (
    caller,
    named_passages,
    splitting,
    to_document,
)
from rag_splitters.langchain.rows import ByteDocuments, rows_in
from rag_splitters.parent_child.index import ParentChildIndex, Shared
from rag_splitters.parent_child.passages import SOURCE_KEY, Passage
from rag_splitters.parent_child.reranking import Reranker
from rag_splitters.parent_child.search import Query, Retrieve, SearchType
from rag_splitters.parent_child.stores import Stores, run, threaded

__all__ = ["ParentDocumentRetriever"]

_OF_QUERY = ("score_threshold", "fetch_k", "lambda_mult")


class ParentDocumentRetriever(ParentChildIndex[Document, Document, Document], DocumentIndex):
    """Finds small chunks and returns the larger chunks that hold them.

    Small chunks are found best, large ones are read best: documents are cut into parents, which go
    to a key-value store, and these into children, which go to a vector store and name their parent.
    `parent_document_retriever` sets one up; construct it yourself for other stores. It takes the
    parameters of `langchain_classic`'s retriever of this name, and opens what that one wrote with
    `id_key="doc_id"`. It is also a `DocumentIndex`: `langchain_core.indexing.index` works on it.

    A result has the parent's metadata with `start_index` and `end_index` in the source (where the
    splitters report exact positions), `score` (of its best child: a similarity, higher is better,
    where the vector store says how its numbers are to be read, as Chroma does; else its number as
    it is; None if it has none) and `matches`: position and score of the children, best first.

    Documents are known by their `id` or, without one, by their text and metadata. Adding one again
    unchanged costs nothing (it is split, but not embedded); changed, it replaces what was there. Of
    the children's metadata a vector store gets what it takes, for filters; the results have all.

    >>> from langchain_core.documents import Document
    >>> from langchain_text_splitters import CharacterTextSplitter
    >>> from rag_splitters.langchain import parent_document_retriever
    >>> words = CharacterTextSplitter(separator=" ", chunk_size=1, chunk_overlap=0)
    >>> retriever = parent_document_retriever(
    ...     [Document(page_content="red apple", id="a"), Document(page_content="blue sky", id="b")],
    ...     child_splitter=words, parent_splitter=None, k=1)
    >>> [result.page_content for result in retriever.invoke("apple")]
    ['red apple']
    """

    vectorstore: VectorStore
    """Where the children are."""
    docstore: BaseStore[str, Document]
    """Where the parents are, and a record of each source document."""
    byte_store: ByteStore | None = None
    """In place of `docstore`: a store of bytes, which holds documents as `langchain_classic`'s
    `create_kv_docstore` writes them."""
    child_splitter: TextSplitter
    """Cuts parents into children."""
    parent_splitter: TextSplitter | None = None
    """Cuts documents into parents; None takes each document whole."""
    id_key: str = Field(default="parent_id", min_length=1)
    """The key in a child's metadata that holds its parent's UUID."""
    child_metadata_fields: Sequence[str] | None = None
    """The keys of a document's metadata that its children keep; None: all."""
    k: int = Field(default=4, ge=1)
    """How many results: parents or, by `retrieve`, children or merged passages."""
    retrieve: Retrieve = "parents"
    """What a query returns: "parents"; "children"; or "merged": children that lie side by side in
    their document are joined, without repeating what both have."""
    merged_size: int = Field(default=2000, ge=1)
    """How long a merged passage may get, in characters."""
    search_type: Annotated[
        SearchType, BeforeValidator(lambda kind: kind.value if isinstance(kind, Enum) else kind)
    ] = "similarity"
    """How children are found: by "similarity"; those with a "similarity_score_threshold"; by
    maximal marginal relevance, "mmr"; or "hybrid": by similarity and by keywords (BM25), fused by
    reciprocal rank."""
    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    """`score_threshold`; for "mmr" `fetch_k` (20) and `lambda_mult` (0.5); further arguments of the
    vector store's search, such as `filter`."""
    smoothing: float = Field(default=0.0, ge=0.0, le=10.0)
    """Mixes each child's vector with its neighbours' in the document, by a Gaussian of this width
    in children; 0 does not. Needs Chroma."""
    headings: bool = False
    """Puts a document's title (`metadata["title"]`) and the headings that a child stands under
    before its text, where that is embedded and indexed; the text stays as it is. Needs Chroma."""
    reranker: Reranker | BaseDocumentCompressor | None = None
    """Orders results anew: (question, texts) -> scores, or a document compressor."""
    rerank_k: int | None = Field(default=None, ge=1)
    """How many results the reranker is given; None: four times as many as are returned."""
    batch_size: int | None = Field(default=None, ge=1)
    """How many children are embedded and written at once; None: 4,000, or less for the store."""

    shared: Shared = Field(default_factory=Shared, exclude=True, repr=False)
    """What the retrievers that are made of this one share with it, such as the keyword index."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("search_kwargs")
    @classmethod
    def _refuse_k(cls, value: dict[str, Any]) -> dict[str, Any]:
        if "k" in value:
            raise ValueError("give k to the retriever and not in search_kwargs: it counts results")
        return value

    @model_validator(mode="before")
    @classmethod
    def _wrap_byte_store(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("byte_store") is None:
            return values
        made = ByteDocuments(values["byte_store"])
        if values.get("docstore") not in (None, made):
            raise ValueError("give docstore or byte_store, not both: each would hold the parents")
        return {**values, "docstore": made}

    @model_validator(mode="after")
    def _check_smoothing(self) -> Self:
        told = f"smoothing={self.smoothing:g}" if self.smoothing else "headings=True"
        if (self.smoothing or self.headings) and chroma_collection(self.vectorstore) is None:
            raise ValueError(
                f"{told} needs Chroma: {type(self.vectorstore).__name__} embeds by itself"
            )
        return self

    @override
    def add_documents(
        self,
        documents: Iterable[Document],
        ids: Sequence[str] | None = None,
        add_to_docstore: bool = True,
    ) -> list[str]:
        """Add or replace documents, under `ids` if given; the id of each is returned."""
        _refuse_children_alone(add_to_docstore)
        return super().add_documents(documents, ids)

    @override
    async def aadd_documents(
        self,
        documents: Iterable[Document],
        ids: Sequence[str] | None = None,
        add_to_docstore: bool = True,
    ) -> list[str]:
        """Asynchronous `add_documents`."""
        _refuse_children_alone(add_to_docstore)
        return await super().aadd_documents(documents, ids)

    def upsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """`add_documents`, as a `DocumentIndex` names it."""
        return {"succeeded": self.add_documents(items), "failed": []}

    async def aupsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """Asynchronous `upsert`."""
        return {"succeeded": await self.aadd_documents(items), "failed": []}

    def delete(
        self, ids: list[str] | None = None, *, source: str | None = None, **kwargs: Any
    ) -> DeleteResponse:
        """Remove documents with all their chunks: by id, or by their `metadata["source"]`.

        A parent that `langchain_classic` wrote is known by its own id.
        """
        return _deleted(run(self._remove(ids, source, asynchronous=False)))

    async def adelete(
        self, ids: list[str] | None = None, *, source: str | None = None, **kwargs: Any
    ) -> DeleteResponse:
        """Asynchronous `delete`."""
        return _deleted(await self._remove(ids, source, asynchronous=True))

    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Source documents as they were added, by their ids, or parents by theirs."""
        return run(self._get(ids, asynchronous=False))

    async def aget(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Asynchronous `get`."""
        return await self._get(ids, asynchronous=True)

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        found = run(self._found(query, k, kwargs, asynchronous=False))
        if found and isinstance(self.reranker, BaseDocumentCompressor):
            callbacks = run_manager.get_child()
            found = list(self.reranker.compress_documents(found, query, callbacks))
        return found[: k or self.k]

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        found = await self._found(query, k, kwargs, asynchronous=True)
        if found and isinstance(self.reranker, BaseDocumentCompressor):
            callbacks = run_manager.get_child()
            found = list(await self.reranker.acompress_documents(found, query, callbacks))
        return found[: k or self.k]

    async def _found(
        self, text: str, k: int | None, more: dict[str, Any], *, asynchronous: bool
    ) -> list[Document]:
        told = {**self.search_kwargs, **more}
        query = Query(
            text=text,
            k=self._wanted(self.k if k is None else k),
            retrieve=self.retrieve,
            search_type=self.search_type,
            merged_size=self.merged_size,
            **{name: told.pop(name) for name in _OF_QUERY if name in told},
        )
        reranker = None if isinstance(self.reranker, BaseDocumentCompressor) else self.reranker
        return await self._search(query, told, reranker, asynchronous=asynchronous)

    def _wanted(self, k: int) -> int:
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        return k if self.reranker is None else max(k, self.rerank_k or 4 * k)

    @override
    def _stores(self, *, asynchronous: bool, filters: Mapping[str, Any] | None = None) -> Stores:
        call = caller(asynchronous)
        fields = self.child_metadata_fields
        is_hybrid = self.search_type == "hybrid"
        return Stores(
            rows=rows_in(self.docstore, call, asynchronous),
            children=children_in(
                self.vectorstore,
                call,
                batch_size=self.batch_size,
                smoothing=self.smoothing,
                filters=filters or {},
                asynchronous=asynchronous,
            ),
            split=splitting(
                {"parents": self.parent_splitter, "children": self.child_splitter}, call
            ),
            call=threaded(asynchronous),
            id_key=self.id_key,
            headings=self.headings,
            keywords=self._keywords if is_hybrid or self._keywords.is_open else None,
            inherited=None if fields is None else frozenset(fields),
        )

    @override
    def _passages(
        self, documents: Iterable[Document], ids: Sequence[str] | None
    ) -> Iterable[Passage]:
        return named_passages(documents, ids)

    @override
    def _document(self, passage: Passage) -> Document:
        return to_document(passage)

    @override
    def _result(self, passage: Passage) -> Document:
        passage.metadata.pop(SOURCE_KEY, None)  # what was found shares its metadata with nothing
        return Document(page_content=passage.text, metadata=passage.metadata, id=passage.id)


def _refuse_children_alone(add_to_docstore: bool) -> None:
    if not add_to_docstore:
        raise ValueError(
            "add_to_docstore=False would write children of parents that are not known to be there: "
            "leave it out; what is there unchanged is not written again"
        )


def _deleted(ids: list[str]) -> DeleteResponse:
    return {"succeeded": ids, "num_deleted": len(ids), "failed": [], "num_failed": 0}
