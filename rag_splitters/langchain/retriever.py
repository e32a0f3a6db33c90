"""Parent-child retrieval for LangChain: the retriever, and the function that sets one up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    Callbacks,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex
from langchain_core.stores import BaseStore, ByteStore, InMemoryStore
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.vectorstores import VectorStore
from langchain_text_splitters import TextSplitter
from pydantic import ConfigDict, Field, field_validator, model_validator
from typing_extensions import Self, Unpack, override

from rag_splitters.calls import in_both_forms
from rag_splitters.contract.help_texts import with_field_descriptions
from rag_splitters.errors import InputError
from rag_splitters.langchain.adapters import (
    ByteDocuments,
    call_method,
    chroma_collection,
    make_child_store,
    make_docstore,
    make_split,
    to_result,
)
from rag_splitters.langchain.documents import to_document, to_entry
from rag_splitters.langchain.kvstores import DocumentStore
from rag_splitters.langchain.splitters import AutoTextSplitter, RecursiveTextSplitter
from rag_splitters.models import Embedder, HashingEmbeddings, describe_model
from rag_splitters.parameters.checks import check_keywords, whole_number
from rag_splitters.parameters.messages import plain_errors
from rag_splitters.parent_child.index import ParentChildIndex, Prepared
from rag_splitters.parent_child.opening import (
    CHILDREN,
    CLASSIC_ID_KEY,
    PARENTS,
    IndexOptions,
    Shared,
    search_options,
)
from rag_splitters.parent_child.options import (
    LLAMA_INDEX_NAMES,
    Query,
    QueryKeywords,
    QueryOptions,
    Retrieve,
    SearchType,
)
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.representations import Representations
from rag_splitters.parent_child.reranking import Reranker, read_order, rerank_with
from rag_splitters.parent_child.search import Rerank
from rag_splitters.parent_child.stores.children import ChildStore, Split
from rag_splitters.parent_child.stores.keyvalue import KeyValueStore
from rag_splitters.parent_child.writing import Docstore
from rag_splitters.tools import index_tools

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

_SCORE = "relevance_score"  # where LangChain's rerankers put it


@with_field_descriptions
class ParentDocumentRetriever(
    ParentChildIndex[Document, Document], QueryOptions, IndexOptions, DocumentIndex
):
    """Searches small chunks and returns the larger chunks that contain them.

    Small chunks match a question best, and large ones give a model enough to read. So documents are
    cut into parents, which go to a key-value store, and parents into children, which go to a vector
    store and point to their parent. The function `parent_document_retriever` sets up a retriever
    with its stores; construct one yourself for other stores. It accepts the parameters of
    `langchain_classic`'s retriever of the same name, and with `id_key="doc_id"` it opens indexes
    that one wrote. It is also a `DocumentIndex`, so `langchain_core.indexing.index` works on it.

    A result has the parent's metadata, `start_index` and `end_index` in the source (if the
    splitters report exact positions), `score` and `matches`. The score is that of its best child.
    It is a similarity, where higher is better, if the vector store can convert its scores, as
    Chroma can; otherwise it is the store's own score, or None if there is none. With hybrid search
    it is between 0 and 1, and low if the question has nothing to do with the documents. The matches
    are the positions and scores of the children, best first.

    Documents are identified by their `id` or, without one, by their text and metadata. An unchanged
    document is split again, but not embedded or written; a changed one replaces the stored one. The
    vector store receives only the metadata that it can filter on. Results carry all of it.

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
    """Vector store for the children."""
    docstore: BaseStore[str, Document]
    """Key-value store for the parents, and for a record of each source document. A `SQLiteStore`,
    `RedisStore` or `PostgresStore` becomes a `DocumentStore`."""
    byte_store: ByteStore | None = None
    """Byte store to use instead of `docstore`, in the format of `langchain_classic`'s
    `create_kv_docstore`."""
    child_splitter: TextSplitter
    """Text splitter that cuts parents into children."""
    parent_splitter: TextSplitter | None = None
    """Text splitter that cuts documents into parents; None: each document is one parent."""
    child_metadata_fields: Sequence[str] | None = None
    """Keys of a document's metadata to copy to its children; None: all."""
    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the vector store's search, such as `filter`. As in `langchain_classic`, `k` is
    the number of children to use (`max_children`), and `score_threshold`, `fetch_k` and
    `lambda_mult` can be passed here, too."""
    reranker: Reranker | BaseDocumentCompressor | None = None
    """Function (question, texts) -> scores, or document compressor, that orders the children
    before results are made of them."""

    shared: Shared = Field(default_factory=Shared, exclude=True, repr=False)
    """State that copies of this retriever share with it, such as the keyword index."""

    model_config = ConfigDict(extra="forbid")

    if not TYPE_CHECKING:  # type checkers see the signature that pydantic makes of the fields

        def __init__(self, **parameters: Any) -> None:
            with plain_errors(type(self)):
                super().__init__(**parameters)

    _own_options: ClassVar = ("search_kwargs",)

    @field_validator("search_kwargs")
    @classmethod
    def _check_k(cls, value: dict[str, Any]) -> dict[str, Any]:
        if "k" in value:
            whole_number(value["k"], 'search_kwargs["k"]', 1)
        return value

    @model_validator(mode="before")
    @classmethod
    def _wrap_stores(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        if isinstance(rows := values.get("docstore"), KeyValueStore):
            values = {**values, "docstore": DocumentStore(rows)}
        elif ByteStore in getattr(type(rows), "__orig_bases__", ()):
            raise InputError(f"{type(rows).__name__} stores bytes: pass it as byte_store")
        if values.get("byte_store") is None:
            return values
        documents = ByteDocuments(values["byte_store"])
        if values.get("docstore") not in (None, documents):
            raise InputError("pass docstore or byte_store, not both: either one holds the parents")
        return {**values, "docstore": documents}

    def _check_options(self) -> Self:
        option = f"smoothing={self.smoothing:g}" if self.smoothing else "headings=True"
        if (self.smoothing or self.headings) and chroma_collection(self.vectorstore) is None:
            raise InputError(
                f"{option} needs Chroma: {type(self.vectorstore).__name__} computes its own vectors"
            )
        return self

    _check_new_options = model_validator(mode="after")(_check_options)

    @override
    async def _add_documents(
        self,
        documents: Iterable[Document],
        ids: Sequence[str] | None = None,
        add_to_docstore: bool = True,
    ) -> list[str]:
        """Add or replace documents, under `ids` or else their own ids, and return the ids.

        Raises ValueError if different documents have the same id.
        """
        if not add_to_docstore:
            raise InputError(
                "add_to_docstore=False is not supported, because it would write children whose "
                "parents may not exist: leave it out; unchanged documents are not written again"
            )
        return await super()._add_documents(documents, ids)

    add_documents, aadd_documents = in_both_forms(_add_documents)

    def upsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """Add documents; the `DocumentIndex` name of `add_documents`."""
        return {"succeeded": self.add_documents(items), "failed": []}

    async def aupsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """Asynchronous `upsert`."""
        return {"succeeded": await self.aadd_documents(items), "failed": []}

    async def _delete(
        self, ids: list[str] | None = None, *, source: str | None = None, **kwargs: Any
    ) -> DeleteResponse:
        """Remove documents with all their chunks: by id, or by their `metadata["source"]`."""
        removed = await self._remove(ids, source)
        count = len(removed)
        return {"succeeded": removed, "num_deleted": count, "failed": [], "num_failed": 0}

    async def _get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Return source documents as they were added, by their ids, or parents by theirs."""
        return await self._read(ids)

    delete, adelete = in_both_forms(_delete)
    get, aget = in_both_forms(_get)

    def as_tools(self) -> list[BaseTool]:
        """Return tools with which an agent reads the index: search, grep, outline, read, expand.

        They are described in the documentation's page about agents.
        """
        return [
            StructuredTool.from_function(
                each.function, each.async_function, each.name, each.description
            )
            for each in index_tools(self)
        ]

    async def _find(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
        **kwargs: Any,
    ) -> list[Document]:
        prepared, filters, _ = self._prepare(query, kwargs)
        results = await self._search(prepared, filters, self._rerank(run_manager.get_child()))
        return list(map(to_result, results))

    _get_relevant_documents, _aget_relevant_documents = in_both_forms(_find)

    def _rerank(self, callbacks: Callbacks) -> Rerank | None:
        reranker = self.reranker
        if not isinstance(reranker, BaseDocumentCompressor):
            return None if reranker is None else rerank_with(reranker)

        async def rerank(question: str, children: Sequence[Entry]) -> Sequence[tuple[int, Any]]:
            documents = list(map(to_result, children))
            compressed: Sequence[Document] = await call_method(
                reranker, "compress_documents", documents, question, callbacks=callbacks
            )
            answer = [(each.page_content, each.metadata.get(_SCORE)) for each in compressed]
            return read_order(children, answer)

        return rerank

    @override
    def _prepare(self, text: str, options: Mapping[str, Any]) -> Prepared:
        """Return the query, what is left for the vector store, and the reranker.

        What is passed with the question comes before `search_kwargs`, and these before the fields.
        """
        call_options = {
            each: options[each] for each in QueryOptions.model_fields if each in options
        }
        others = {key: value for key, value in options.items() if key not in call_options}
        search_kwargs = self._check_k({**self.search_kwargs, **others})
        if "k" in search_kwargs:
            search_kwargs["max_children"] = search_kwargs.pop("k")
        own = {name: getattr(self, name) for name in QueryOptions.model_fields}
        for name in own.keys() & search_kwargs.keys():
            own[name] = search_kwargs.pop(name)
        return Query.of(text, own | call_options), search_kwargs, self._rerank(None)

    @override
    def _open_stores(self, filters: Mapping[str, Any]) -> tuple[Docstore, ChildStore, Split]:
        self._check_options()  # again, as they may have been assigned since
        children = make_child_store(self.vectorstore, filters, self.model_name)
        split = make_split({"parents": self.parent_splitter, "children": self.child_splitter})
        return make_docstore(self.docstore), children, split

    _entry = staticmethod(to_entry)
    _document = staticmethod(to_document)


class _Options(QueryKeywords, total=False):
    k: int | None
    score_threshold: float | None
    fetch_k: int
    lambda_mult: float
    search_kwargs: dict[str, Any]
    reranker: Reranker | BaseDocumentCompressor | None
    representations: Representations | Any
    child_metadata_fields: Sequence[str] | None
    batch_size: int | None
    write_timeout: float


@check_keywords(
    ParentDocumentRetriever, synonyms={theirs: ours for ours, theirs in LLAMA_INDEX_NAMES.items()}
)
def parent_document_retriever(
    documents: Iterable[Document] | None = None,
    *,
    path: str | Path | None = None,
    client: ClientAPI | None = None,
    embeddings: Any = None,
    vectorstore: VectorStore | None = None,
    docstore: BaseStore[str, Document] | KeyValueStore | None = None,
    byte_store: ByteStore | None = None,
    child_splitter: TextSplitter | None = None,
    parent_splitter: TextSplitter | EllipsisType | None = ...,
    retrieve: Retrieve | None = None,
    search_type: SearchType | None = None,
    smoothing: float | None = None,
    headings: bool | None = None,
    id_key: str = "parent_id",
    collection_name: str = "rag_splitters",
    model_name: str | None = None,
    reembed: bool = False,
    **options: Unpack[_Options],
) -> ParentDocumentRetriever:
    """Set up a `ParentDocumentRetriever`, and add `documents` to it.

    By default, everything is kept in memory. To keep it on disk, pass a folder as `path`: children
    are stored in a Chroma database in `path/chroma`, parents in `path/parents`, and each
    `collection_name` is an index of its own. Only one process at a time may have the folder open.
    To share an index between processes, pass a `client` of a Chroma server (`chroma run`) and a
    `docstore` on a server, such as `PostgresStore`; then `path` is a folder for this process's
    keyword index. For other vector stores, pass a `vectorstore`.

    `embeddings` is a LangChain or LlamaIndex embedding model, or a function list[str] ->
    list[list[float]]. The default is `HashingEmbeddings`, which match words and not meaning. An
    index can only be opened with the model that it was written with; with `reembed=True`, all its
    documents are embedded anew with another one. A function without a name, such as a lambda, needs
    a `model_name` for an index that outlives the process. `child_splitter` defaults to
    `RecursiveTextSplitter(chunk_size=400)`, and `parent_splitter` to
    `AutoTextSplitter(chunk_size=2000)`, which cuts each document by its kind and reads HTML and XML
    without their tags; `parent_splitter=None` makes each document one parent, which is the default
    with `byte_store`, as in `langchain_classic`.

    By default, a query returns "passages": the best children, joined with the neighbours in the
    document that they need. With `byte_store` or `id_key="doc_id"`, it returns whole "parents", as
    in `langchain_classic`.

    `k` is the number of results (default 4), and `search_kwargs={"k": ...}` the number of children
    to use. If you pass only the second, all the results that these children lead to are returned,
    as in `langchain_classic`. With `max_tokens`, as many results are returned as fit.

    `search_type`, `smoothing` and `headings` default to the values that retrieve best in the
    documentation's benchmarks: "hybrid", 0.6 and True. A `vectorstore` that you pass is searched by
    "similarity" only, and without the other two. The other parameters are the retriever's.

    Raises ValueError for options that contradict each other; IndexMismatchError (a ValueError) for
    stores that belong to different indexes, or that another model wrote; FolderInUseError (a
    RuntimeError) for a folder that another process has open; and RefusedDocumentsError, whose
    `result` is the retriever, for documents that cannot be stored.
    """
    if vectorstore is not None and embeddings is not None:
        raise InputError("pass embeddings or vectorstore, not both: the vectorstore has its own")
    if vectorstore is not None and client is not None:
        raise InputError("client would not be used: pass either client or vectorstore")
    defaults = search_options(vectorstore is None, search_type, smoothing, headings)
    is_classic = byte_store is not None or id_key == CLASSIC_ID_KEY
    if isinstance(parent_splitter, EllipsisType):
        parent_splitter = AutoTextSplitter(**PARENTS) if byte_store is None else None
    parents = docstore if byte_store is None else byte_store
    with Shared(path, collection_name) as shared:
        if vectorstore is None:
            model: Any = HashingEmbeddings() if embeddings is None else embeddings
            if not callable(getattr(model, "embed_documents", None)):
                model = Embedder(model)
            name = model_name or describe_model(model)
            vectorstore = _chroma(*shared.open_collection(client, name, reembed=reembed), model)
        if parents is None:
            docstore = shared.open_docstore(InMemoryStore)
        retriever = ParentDocumentRetriever(
            vectorstore=vectorstore,
            docstore=docstore,  # type: ignore[arg-type]  # byte_store stands in, or it is wrapped
            byte_store=byte_store,
            child_splitter=child_splitter or RecursiveTextSplitter(**CHILDREN),
            parent_splitter=parent_splitter,
            retrieve=retrieve or ("parents" if is_classic else "passages"),
            id_key=id_key,
            model_name=model_name,
            shared=shared,
            **defaults,
            **options,
        )
        return retriever.open(documents, reembed=reembed)


def _chroma(client: Any, collection: Any, model: Any) -> VectorStore:
    from langchain_chroma import Chroma

    return Chroma(
        client=client,
        collection_name=collection.name,
        embedding_function=model,
        create_collection_if_not_exists=False,
        relevance_score_fn=lambda distance: 1.0 - distance,
    )
