"""Setting up parent-child retrieval for LangChain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.stores import BaseStore, InMemoryStore
from langchain_core.vectorstores import VectorStore
from langchain_text_splitters import TextSplitter

from rag_splitters.langchain.docstores import SQLiteStore
from rag_splitters.langchain.retriever import ParentDocumentRetriever
from rag_splitters.models import Embedder, HashingEmbeddings
from rag_splitters.parent_child.index import Shared
from rag_splitters.parent_child.opening import (
    CHILD_SIZE,
    PARENT_SIZE,
    Place,
    refuse_contradictions,
    search_options,
)
from rag_splitters.parent_child.reranking import Reranker
from rag_splitters.parent_child.search import Retrieve, SearchType

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

__all__ = ["parent_document_retriever"]


def parent_document_retriever(
    documents: Iterable[Document] | None = None,
    *,
    path: str | Path | None = None,
    client: ClientAPI | None = None,
    embeddings: Any = None,
    vectorstore: VectorStore | None = None,
    docstore: BaseStore[str, Document] | None = None,
    child_splitter: TextSplitter | None = None,
    parent_splitter: TextSplitter | EllipsisType | None = ...,
    k: int = 4,
    retrieve: Retrieve = "parents",
    merged_size: int = 2000,
    search_type: SearchType | None = None,
    search_kwargs: dict[str, Any] | None = None,
    smoothing: float | None = None,
    headings: bool | None = None,
    reranker: Reranker | BaseDocumentCompressor | None = None,
    rerank_k: int | None = None,
    id_key: str = "parent_id",
    child_metadata_fields: Sequence[str] | None = None,
    batch_size: int | None = None,
    collection_name: str = "rag_splitters",
) -> ParentDocumentRetriever:
    """Set up a `ParentDocumentRetriever`, and add `documents` to it.

    By default all is in memory. `path` is a folder that keeps it: children in a Chroma in
    `path/chroma`, parents in `path/parents.sqlite`; one process at a time may have it open. Several
    processes share an index through a `client` of a Chroma server (`chroma run`) and a `docstore`
    on one, such as `PostgresStore`. Or hand in a `vectorstore` of another kind.

    `embeddings` is a LangChain or LlamaIndex embedding model or a callable list[str] ->
    list[list[float]]; without one, `HashingEmbeddings`, which match words and not meaning. A folder
    can only be opened with the model that it was written with. `child_splitter` is by default
    `RecursiveTextSplitter(chunk_size=400)` and `parent_splitter` the same with 2,000 characters;
    `parent_splitter=None` takes documents whole.

    `search_type`, `smoothing` and `headings` are by default what finds most by the figures in the
    README: "hybrid", 0.6 and True. A `vectorstore` that you hand in is searched by "similarity"
    alone, as it is. The other parameters are the retriever's.

    Raises: ValueError for options that contradict each other, and for a folder of another model;
    FolderInUseError (a RuntimeError) for a folder that another process has open.
    """
    refuse_contradictions(path, client, vectorstore, docstore, "vectorstore")
    if vectorstore is not None and embeddings is not None:
        raise ValueError("embeddings would not be used: the vectorstore brings its own")
    options = search_options(vectorstore is None, search_type, smoothing, headings)
    with ExitStack() as opened:
        place = Place(path, opened)
        if vectorstore is None:
            vectorstore = _chroma(place, client, embeddings, collection_name)
        if docstore is None and place.folder is not None:
            docstore = SQLiteStore(place.folder / "parents.sqlite")
            opened.callback(docstore.close)
        retriever = ParentDocumentRetriever(
            vectorstore=vectorstore,
            docstore=InMemoryStore() if docstore is None else docstore,
            child_splitter=child_splitter or _default_splitter(CHILD_SIZE),
            parent_splitter=_default_splitter(PARENT_SIZE)
            if isinstance(parent_splitter, EllipsisType)
            else parent_splitter,
            k=k,
            retrieve=retrieve,
            merged_size=merged_size,
            search_kwargs=search_kwargs or {},
            reranker=reranker,
            rerank_k=rerank_k,
            id_key=id_key,
            child_metadata_fields=child_metadata_fields,
            batch_size=batch_size,
            **options,
        )
        retriever.shared = Shared(place.guard, place.keywords)
        if documents is not None:
            retriever.add_documents(documents)
        retriever.shared.opened = opened.pop_all()
    return retriever


def _chroma(place: Place, client: Any, embeddings: Any, name: str) -> VectorStore:
    from langchain_chroma import Chroma

    model: Any = HashingEmbeddings() if embeddings is None else embeddings
    if not callable(getattr(model, "embed_documents", None)):
        model = Embedder(model)
    client, collection = place.collection(client, model, name)
    return Chroma(
        client=client,
        collection_name=collection.name,
        embedding_function=model,
        create_collection_if_not_exists=False,
        relevance_score_fn=lambda distance: 1.0 - distance,
    )


def _default_splitter(size: int) -> TextSplitter:
    from rag_splitters.langchain.splitters import RecursiveTextSplitter

    return RecursiveTextSplitter(chunk_size=size)
