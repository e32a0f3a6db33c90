"""Parent-child retrieval for LlamaIndex: the retriever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.node_parser import NodeParser
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, Document, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.storage.kvstore.types import BaseKVStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters
from typing_extensions import override

from rag_splitters.llama_index.children import VectorStoreChildren, chroma_collection
from rag_splitters.llama_index.kvstores import JSONKVStore
from rag_splitters.llama_index.passages import (
    Call,
    caller,
    named_passages,
    splitting,
    to_document,
    to_node,
)
from rag_splitters.llama_index.rows import DocumentStoreRows, KVStoreRows
from rag_splitters.parent_child.chroma_children import ChromaChildren
from rag_splitters.parent_child.index import ParentChildIndex, Shared
from rag_splitters.parent_child.keyvalue import KeyValueStore
from rag_splitters.parent_child.passages import Passage
from rag_splitters.parent_child.reranking import Reranker
from rag_splitters.parent_child.rows import KeyValueRows
from rag_splitters.parent_child.search import Query, Retrieve, SearchType
from rag_splitters.parent_child.stores import Children, Rows, Stores, run, threaded
from rag_splitters.parent_child.vectors import Vectors

__all__ = ["Docstore", "ParentDocumentRetriever"]

Docstore = KeyValueStore | BaseKVStore | BaseDocumentStore


class ParentDocumentRetriever(ParentChildIndex[BaseNode, Document, NodeWithScore], BaseRetriever):
    """Finds small chunks and returns the larger chunks that hold them.

    Documents are cut into parents, which go to a key-value store or docstore, and these into
    children, which go to a vector store and name their parent. `parent_document_retriever` sets one
    up; construct it yourself for other stores. A folder, or stores on servers, that this one wrote
    are opened by the LangChain retriever of the same name, and the reverse.

    A result is a node with its positions in the source (where the parser is ours), the score of its
    best child and, under `matches` in its metadata, position and score of the children that were
    found, best first; these are shown to no model.

    Documents are known by the id that they were given or, without one, by their text and metadata:
    the random id that LlamaIndex gives is none. Adding one again unchanged costs nothing; changed,
    it replaces what was there.

    Parameters:
        vector_store: where the children are; one that keeps texts.
        docstore: where the parents are, and a record of each document: a `BaseKVStore`, a
            `BaseDocumentStore`, or one of our own key-value stores.
        embed_model: a LlamaIndex or LangChain embedding model, or a callable list[str] ->
            list[list[float]].
        child_parser: cuts parents into children.
        parent_parser: cuts documents into parents; None takes each document whole.
        similarity_top_k: how many results: parents or, by `retrieve`, children or merged passages.
        retrieve: what a query returns: "parents"; "children"; or "merged": children that lie side
            by side in their document are joined, without repeating what both have. It is kept as
            `retrieve_kind`, since `retrieve` asks.
        merged_size: how long a merged passage may get, in characters.
        search_type: how children are found: by "similarity"; those with a
            "similarity_score_threshold" (`similarity_cutoff`); by maximal marginal relevance,
            "mmr"; or "hybrid": by similarity and by keywords (BM25), fused by reciprocal rank.
        similarity_cutoff: the least similarity, for that search type.
        mmr_threshold: for "mmr", 1 for the nearest, 0 for the most diverse.
        mmr_prefetch_k: for "mmr", how many are chosen from.
        filters: metadata that children must have.
        smoothing: mixes each child's vector with its neighbours' in the document, by a Gaussian of
            this width in children; 0 does not.
        headings: puts a document's title (`metadata["title"]`) and the headings that a child
            stands under before its text, where that is embedded and indexed; the text stays as it
            is.
        reranker: orders results anew: (question, texts) -> scores, or a node postprocessor.
        rerank_k: how many results the reranker is given; None: four times as many as are returned.
        id_key: the key in a child's metadata that holds its parent's UUID.
        batch_size: how many children are embedded and written at once; None: 4,000, or less for
            the store.
        callback_manager: LlamaIndex's.

    Raises: ValueError for a vector store that keeps no texts, and for numbers that make no sense.

    >>> from rag_splitters.llama_index import SentenceNodeParser, parent_document_retriever
    >>> retriever = parent_document_retriever(
    ...     [Document(text="A red apple."), Document(text="The blue sky.")],
    ...     child_parser=SentenceNodeParser(), parent_parser=None, similarity_top_k=1)
    >>> [result.text for result in retriever.retrieve("apple")]
    ['A red apple.']
    """

    def __init__(
        self,
        *,
        vector_store: BasePydanticVectorStore,
        docstore: Docstore,
        embed_model: Any,
        child_parser: NodeParser,
        parent_parser: NodeParser | None = None,
        similarity_top_k: int = 4,
        retrieve: Retrieve = "parents",
        merged_size: int = 2000,
        search_type: SearchType = "similarity",
        similarity_cutoff: float = 0.0,
        mmr_threshold: float = 0.5,
        mmr_prefetch_k: int = 20,
        filters: MetadataFilters | None = None,
        smoothing: float = 0.0,
        headings: bool = False,
        reranker: Reranker | BaseNodePostprocessor | None = None,
        rerank_k: int | None = None,
        id_key: str = "parent_id",
        batch_size: int | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        if not vector_store.stores_text:
            raise ValueError(
                f"vector_store must keep texts, and {type(vector_store).__name__} keeps vectors "
                "alone: leave it out for Chroma, or hand in another"
            )
        self.vector_store = vector_store
        self.docstore = docstore.rows if isinstance(docstore, JSONKVStore) else docstore
        self.embed_model = embed_model
        self.child_parser = child_parser
        self.parent_parser = parent_parser
        self.similarity_top_k = _at_least_one("similarity_top_k", similarity_top_k)
        self.retrieve_kind = _one_of("retrieve", retrieve, Retrieve)
        self.merged_size = _at_least_one("merged_size", merged_size)
        self.search_type = _one_of("search_type", search_type, SearchType)
        self.similarity_cutoff = similarity_cutoff
        self.mmr_threshold = mmr_threshold
        self.mmr_prefetch_k = _at_least_one("mmr_prefetch_k", mmr_prefetch_k)
        self.filters = filters
        if not 0 <= smoothing <= 10:
            raise ValueError(f"smoothing must be between 0 and 10 children, got {smoothing}")
        self.smoothing = smoothing
        self.headings = headings
        self.reranker = reranker
        self.rerank_k = None if rerank_k is None else _at_least_one("rerank_k", rerank_k)
        self.id_key = id_key
        self.batch_size = None if batch_size is None else _at_least_one("batch_size", batch_size)
        self.shared = Shared()

    def __copy__(self) -> ParentDocumentRetriever:
        """A retriever over the same stores, for other options."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def delete(self, ids: Sequence[str] | None = None, *, source: str | None = None) -> list[str]:
        """Remove documents with all their chunks: by id, or by their `metadata["source"]`.

        The ids of those that were there are returned.
        """
        return run(self._remove(ids, source, asynchronous=False))

    async def adelete(
        self, ids: Sequence[str] | None = None, *, source: str | None = None
    ) -> list[str]:
        """Asynchronous `delete`."""
        return await self._remove(ids, source, asynchronous=True)

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Text and metadata of documents as they were added, by their ids, or of parents."""
        return run(self._get(ids, asynchronous=False))

    async def aget(self, ids: Sequence[str]) -> list[Document]:
        """Asynchronous `get`."""
        return await self._get(ids, asynchronous=True)

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = run(self._found(query_bundle, asynchronous=False))
        if found and isinstance(self.reranker, BaseNodePostprocessor):
            found = self.reranker.postprocess_nodes(found, query_bundle)
        return found[: self.similarity_top_k]

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = await self._found(query_bundle, asynchronous=True)
        if found and isinstance(self.reranker, BaseNodePostprocessor):
            found = await self.reranker.apostprocess_nodes(found, query_bundle)
        return found[: self.similarity_top_k]

    async def _found(self, bundle: QueryBundle, *, asynchronous: bool) -> list[NodeWithScore]:
        k = self.similarity_top_k
        query = Query(
            text=bundle.query_str,
            k=k if self.reranker is None else max(k, self.rerank_k or 4 * k),
            retrieve=self.retrieve_kind,
            search_type=self.search_type,
            score_threshold=self.similarity_cutoff,
            fetch_k=self.mmr_prefetch_k,
            lambda_mult=self.mmr_threshold,
            merged_size=self.merged_size,
        )
        reranker = None if isinstance(self.reranker, BaseNodePostprocessor) else self.reranker
        filters = {"filters": self.filters}
        return await self._search(query, filters, reranker, asynchronous=asynchronous)

    @override
    def _stores(self, *, asynchronous: bool, filters: Mapping[str, Any] | None = None) -> Stores:
        call = caller(asynchronous)
        is_hybrid = self.search_type == "hybrid"
        parsers: Any = {"parents": self.parent_parser, "children": self.child_parser}
        return Stores(
            rows=self._rows(call, asynchronous),
            children=self._children(call, asynchronous, (filters or {}).get("filters")),
            split=splitting(parsers, call),
            call=threaded(asynchronous),
            id_key=self.id_key,
            headings=self.headings,
            keywords=self._keywords if is_hybrid or self._keywords.is_open else None,
        )

    def _rows(self, call: Call, asynchronous: bool) -> Rows:
        if isinstance(self.docstore, KeyValueStore):
            return KeyValueRows(self.docstore, call, asynchronous)
        if isinstance(self.docstore, BaseKVStore):
            return KVStoreRows(self.docstore, call)
        return DocumentStoreRows(self.docstore, call)

    def _children(
        self, call: Call, asynchronous: bool, filters: MetadataFilters | None
    ) -> Children:
        vectors = Vectors(self.embed_model, asynchronous=asynchronous)
        collection = chroma_collection(self.vector_store)
        if collection is None:
            return VectorStoreChildren(
                self.vector_store,
                vectors,
                call,
                batch_size=self.batch_size,
                smoothing=self.smoothing,
                filters=filters,
            )
        return ChromaChildren(
            collection,
            vectors,
            batch_size=self.batch_size,
            smoothing=self.smoothing,
            where={"where": _where(filters)},
            asynchronous=asynchronous,
        )

    @override
    def _passages(
        self, documents: Iterable[BaseNode], ids: Sequence[str] | None
    ) -> Iterable[Passage]:
        return named_passages(documents, ids)

    @override
    def _document(self, passage: Passage) -> Document:
        return to_document(passage)

    @override
    def _result(self, passage: Passage) -> NodeWithScore:
        node = to_node(passage, self.id_key)
        return NodeWithScore(node=node, score=passage.metadata.get("score"))


def _where(filters: MetadataFilters | None) -> dict[str, Any] | None:
    """LlamaIndex's filters as Chroma's."""
    if filters is None or not filters.filters:
        return None
    from llama_index.vector_stores.chroma.base import _to_chroma_filter

    return _to_chroma_filter(filters)


def _at_least_one(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return value


def _one_of(name: str, value: Any, kind: Any) -> Any:
    if value not in get_args(kind):
        raise ValueError(f"{name} must be one of {', '.join(get_args(kind))}, got {value!r}")
    return value
