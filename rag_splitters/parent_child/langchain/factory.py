"""Setting up parent-child retrieval for LangChain."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.stores import BaseStore, InMemoryStore
from langchain_core.vectorstores import VectorStore
from langchain_text_splitters import TextSplitter

from rag_splitters.models import HashingEmbeddings, describe_embeddings, embedding_model
from rag_splitters.parent_child.chroma import open_collection
from rag_splitters.parent_child.guard import own_folder
from rag_splitters.parent_child.keywords import KeywordIndex
from rag_splitters.parent_child.langchain.retriever import ParentDocumentRetriever
from rag_splitters.parent_child.langchain_docstores import SQLiteStore
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
    search_type: SearchType | None = None,
    search_kwargs: dict[str, Any] | None = None,
    smoothing: float | None = None,
    headings: bool | None = None,
    reranker: Reranker | BaseDocumentCompressor | None = None,
    id_key: str = "parent_id",
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
    _refuse_contradictions(path, client, embeddings, vectorstore, docstore)
    folder = None if path is None else Path(path)
    is_ours = vectorstore is None
    with ExitStack() as opened:
        guard = None
        if folder is not None:
            guard, release = own_folder(folder)
            opened.callback(release)
        if vectorstore is None:
            vectorstore = _chroma(folder, client, embeddings, collection_name, opened)
        if docstore is None and folder is not None:
            docstore = SQLiteStore(folder / "parents.sqlite")
            opened.callback(docstore.close)
        retriever = ParentDocumentRetriever(
            vectorstore=vectorstore,
            docstore=InMemoryStore() if docstore is None else docstore,
            child_splitter=child_splitter or _default_splitter(400),
            parent_splitter=_default_splitter(2000)
            if isinstance(parent_splitter, EllipsisType)
            else parent_splitter,
            k=k,
            retrieve=retrieve,
            search_type=search_type or ("hybrid" if is_ours else "similarity"),
            search_kwargs=search_kwargs or {},
            smoothing=(0.6 if is_ours else 0.0) if smoothing is None else smoothing,
            headings=is_ours if headings is None else headings,
            reranker=reranker,
            id_key=id_key,
        )
        retriever._keywords = KeywordIndex(folder and folder / "keywords.sqlite")
        opened.callback(retriever._keywords.close)
        retriever._guard = guard or retriever._guard
        if documents is not None:
            retriever.add_documents(documents)
        retriever._opened = opened.pop_all()
    return retriever


def _refuse_contradictions(
    path: object, client: object, embeddings: object, vectorstore: object, docstore: object
) -> None:
    has_children = vectorstore is not None or client is not None
    if path is not None and has_children and docstore is not None:
        raise ValueError("path has nothing to keep: docstore and vectorstore or client were given")
    if vectorstore is not None and embeddings is not None:
        raise ValueError("embeddings would not be used: the vectorstore brings its own")
    if vectorstore is not None and client is not None:
        raise ValueError("client would not be used: the vectorstore is given")


def _chroma(
    folder: Path | None, client: Any, embeddings: Any, name: str, opened: ExitStack
) -> VectorStore:
    from langchain_chroma import Chroma

    model = embedding_model(HashingEmbeddings() if embeddings is None else embeddings)
    client, collection, close = open_collection(folder, client, describe_embeddings(model), name)
    opened.callback(close)
    return Chroma(
        client=client,
        collection_name=collection.name,
        embedding_function=model,
        create_collection_if_not_exists=False,
        relevance_score_fn=lambda distance: 1.0 - distance,
    )


def _default_splitter(size: int) -> TextSplitter:
    from rag_splitters.langchain import RecursiveTextSplitter

    return RecursiveTextSplitter(chunk_size=size)
