"""Setting up parent-child retrieval for LlamaIndex."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from llama_index.core.node_parser import NodeParser
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters

from rag_splitters.llama_index.parsers import RecursiveNodeParser
from rag_splitters.llama_index.retriever import Docstore, ParentDocumentRetriever
from rag_splitters.models import HashingEmbeddings
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
from rag_splitters.parent_child.sqlite import SQLiteKeyValueStore

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

__all__ = ["parent_document_retriever"]


def parent_document_retriever(
    documents: Iterable[BaseNode] | None = None,
    *,
    path: str | Path | None = None,
    client: ClientAPI | None = None,
    embed_model: Any = None,
    vector_store: BasePydanticVectorStore | None = None,
    docstore: Docstore | None = None,
    child_parser: NodeParser | None = None,
    parent_parser: NodeParser | EllipsisType | None = ...,
    similarity_top_k: int = 4,
    retrieve: Retrieve = "parents",
    search_type: SearchType | None = None,
    filters: MetadataFilters | None = None,
    smoothing: float | None = None,
    headings: bool | None = None,
    reranker: Reranker | BaseNodePostprocessor | None = None,
    id_key: str = "parent_id",
    collection_name: str = "rag_splitters",
    **options: Any,
) -> ParentDocumentRetriever:
    """Set up a `ParentDocumentRetriever`, and add `documents` to it.

    By default all is in memory. `path` is a folder that keeps it: children in a Chroma in
    `path/chroma`, parents in `path/parents.sqlite`; one process at a time may have it open. Several
    processes share an index through a `client` of a Chroma server (`chroma run`) and a `docstore`
    on one. Or hand in a `vector_store` of another kind.

    `embed_model` is a LlamaIndex or LangChain embedding model or a callable list[str] ->
    list[list[float]]; without one, `HashingEmbeddings`, which match words and not meaning. A folder
    can only be opened with the model that it was written with. `child_parser` is by default
    `RecursiveNodeParser(chunk_size=400)` and `parent_parser` the same with 2,000 characters;
    `parent_parser=None` takes documents whole.

    `search_type`, `smoothing` and `headings` are by default what finds most by the figures in the
    README: "hybrid", 0.6 and True. A `vector_store` that you hand in is searched by "similarity"
    alone, as it is. The other parameters are the retriever's.

    Raises: ValueError for options that contradict each other, and for a folder of another model;
    FolderInUseError (a RuntimeError) for a folder that another process has open.
    """
    refuse_contradictions(path, client, vector_store, docstore, "vector_store")
    model = HashingEmbeddings() if embed_model is None else embed_model
    options |= search_options(vector_store is None, search_type, smoothing, headings)
    with ExitStack() as opened:
        place = Place(path, opened)
        if vector_store is None:
            vector_store = _chroma(place, client, model, collection_name)
        if docstore is None and place.folder is not None:
            docstore = SQLiteKeyValueStore(place.folder / "parents.sqlite")
            opened.callback(docstore.close)
        retriever = ParentDocumentRetriever(
            vector_store=vector_store,
            docstore=SimpleKVStore() if docstore is None else docstore,
            embed_model=model,
            child_parser=child_parser or RecursiveNodeParser(chunk_size=CHILD_SIZE),
            parent_parser=RecursiveNodeParser(chunk_size=PARENT_SIZE)
            if isinstance(parent_parser, EllipsisType)
            else parent_parser,
            similarity_top_k=similarity_top_k,
            retrieve=retrieve,
            filters=filters,
            reranker=reranker,
            id_key=id_key,
            **options,
        )
        retriever.shared = Shared(place.guard, place.keywords)
        if documents is not None:
            retriever.add_documents(documents)
        retriever.shared.opened = opened.pop_all()
    return retriever


def _chroma(place: Place, client: Any, model: Any, name: str) -> BasePydanticVectorStore:
    from llama_index.vector_stores.chroma import ChromaVectorStore

    _, collection = place.collection(client, model, name)
    return ChromaVectorStore(chroma_collection=collection)
