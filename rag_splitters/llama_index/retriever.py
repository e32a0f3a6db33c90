"""Parent-child retrieval for LlamaIndex: the retriever, and the function that sets one up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.node_parser import NodeParser
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, Document, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import BaseKVStore
from llama_index.core.tools import FunctionTool
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters
from typing_extensions import Unpack, override

from rag_splitters.calls import in_both_forms
from rag_splitters.errors import InputError, InputTypeError
from rag_splitters.llama_index.adapters import (
    call_method,
    make_child_store,
    make_docstore,
    make_split,
    to_document,
    to_entry,
    to_node,
)
from rag_splitters.llama_index.kvstores import JSONKVStore
from rag_splitters.llama_index.parsers import AutoNodeParser, RecursiveNodeParser
from rag_splitters.models import Embedder, HashingEmbeddings, describe_model
from rag_splitters.models.clients import is_embedding_client
from rag_splitters.models.embedder import check_embedding_model
from rag_splitters.parameters.checks import check_has, check_keywords, check_kind
from rag_splitters.parameters.messages import describe_value, plain_errors
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
    OPTION_NAMES,
    Query,
    QueryKeywords,
    Retrieve,
    SearchType,
    rename_options,
)
from rag_splitters.parent_child.records import Entry
from rag_splitters.parent_child.representations import Representations
from rag_splitters.parent_child.reranking import Reranker, read_order, rerank_with
from rag_splitters.parent_child.results import SCORE_KEY, own_key
from rag_splitters.parent_child.search import Rerank
from rag_splitters.parent_child.stores.children import ChildStore, Split
from rag_splitters.parent_child.stores.keyvalue import KeyValueStore
from rag_splitters.parent_child.vectors import Vectors
from rag_splitters.parent_child.writing import Docstore
from rag_splitters.tools import index_tools

if TYPE_CHECKING:
    from chromadb.api import ClientAPI


AnyDocstore = KeyValueStore | BaseKVStore | BaseDocumentStore
"""Stores that can hold the parents."""


LlamaIndexOptions = rename_options("LlamaIndexOptions", OPTION_NAMES)


class _Options(QueryKeywords, total=False):
    similarity_top_k: int | None
    similarity_cutoff: float | None
    mmr_threshold: float
    mmr_prefetch_k: int
    representations: Representations | Any
    batch_size: int | None
    write_timeout: float


class _AllOptions(_Options, total=False):
    retrieve: Retrieve
    search_type: SearchType
    id_key: str
    smoothing: float
    headings: bool
    model_name: str | None


class _FactoryOptions(_Options, total=False):
    filters: MetadataFilters | None
    reranker: Reranker | BaseNodePostprocessor | None
    callback_manager: CallbackManager | None


def _attribute(name: str) -> str:
    return "retrieve_kind" if name == "retrieve" else name


class ParentDocumentRetriever(ParentChildIndex[BaseNode, Document], BaseRetriever):
    """Searches small chunks and returns the larger chunks that contain them.

    Documents are cut into parents, which go to a key-value store or docstore, and parents into
    children, which go to a vector store and point to their parent. The function
    `parent_document_retriever` sets up a retriever with its stores; construct one yourself for
    other stores. Folders, and stores on servers, can also be opened by the LangChain retriever of
    the same name, and the other way round.

    A result is a node with its positions in the source (if the parser is ours) and the score of its
    best child. `matches` in its metadata holds the positions and scores of the children that match,
    best first. Models see neither these, nor places such as pages and lines, nor the keys that the
    document excludes.

    Documents are identified by the ids that you set or, without one, by their text and metadata;
    LlamaIndex's random ids are ignored. An unchanged document is skipped, and a changed one
    replaces the stored one.

    Parameters:
        vector_store: vector store for the children; it must keep texts.
        docstore: store for the parents, and for a record of each document: a `BaseKVStore`, a
            `BaseDocumentStore`, or one of our own key-value stores.
        embed_model: a LlamaIndex or LangChain embedding model, or a function list[str] ->
            list[list[float]].
        child_parser: node parser that cuts parents into children.
        parent_parser: node parser that cuts documents into parents; None: each document is one
            parent.
        filters: metadata that children must have.
        reranker: function (question, texts) -> scores, or node postprocessor, that orders the
            children before results are made of them.
        callback_manager: LlamaIndex's callback manager.
        options: how an index is written and how questions are answered. After
            `from rag_splitters.llama_index import retriever`, `help(retriever.IndexOptions)` and
            `help(retriever.LlamaIndexOptions)` describe them. Each is an attribute that can be set;
            that of `retrieve` is `retrieve_kind`, because `retrieve` is a method.

    Raises ValueError for a vector store that keeps no texts, and for numbers out of range.

    >>> from rag_splitters.llama_index import SentenceNodeParser, parent_document_retriever
    >>> retriever = parent_document_retriever(
    ...     [Document(text="A red apple."), Document(text="The blue sky.")],
    ...     child_parser=SentenceNodeParser(), parent_parser=None, similarity_top_k=1)
    >>> [result.text for result in retriever.retrieve("apple")]
    ['A red apple.']
    """

    child_metadata_fields = None
    _own_options = ("filters",)

    if TYPE_CHECKING:  # the options, which are set as attributes

        def __getattr__(self, name: str) -> Any: ...

    @check_keywords(LlamaIndexOptions, IndexOptions, synonyms=LLAMA_INDEX_NAMES)
    def __init__(
        self,
        *,
        vector_store: BasePydanticVectorStore,
        docstore: AnyDocstore,
        embed_model: Any,
        child_parser: NodeParser,
        parent_parser: NodeParser | None = None,
        filters: MetadataFilters | None = None,
        reranker: Reranker | BaseNodePostprocessor | None = None,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[_AllOptions],
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        check_kind(vector_store, BasePydanticVectorStore, "vector_store")
        if not vector_store.stores_text:
            raise InputError(
                f"vector_store must keep texts, and {type(vector_store).__name__} keeps only "
                "vectors: pass another one, or leave it out to use Chroma"
            )
        self.vector_store = vector_store
        self.docstore = docstore.rows if isinstance(docstore, JSONKVStore) else docstore
        check_embedding_model(embed_model, "embed_model")
        self.embed_model = embed_model
        parsers = {"child_parser": child_parser, "parent_parser": parent_parser or child_parser}
        for name, each in parsers.items():
            if not isinstance(each, NodeParser):
                expected = "a NodeParser, such as RecursiveNodeParser()"
                raise InputTypeError(f"{name} must be {expected}, got {describe_value(each)}")
        self.child_parser = child_parser
        self.parent_parser = parent_parser
        self.filters = filters
        self.reranker = reranker
        for kind in (LlamaIndexOptions, IndexOptions):
            own = {name: value for name, value in options.items() if name in kind.model_fields}
            with plain_errors(kind):
                values = dict(kind.model_validate(own))
            for name, value in values.items():
                setattr(self, _attribute(name), value)
        self.shared = Shared()

    def __copy__(self) -> ParentDocumentRetriever:
        """Return a retriever over the same stores, whose options can be changed."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    async def _delete(
        self, ids: Sequence[str] | None = None, *, source: str | None = None
    ) -> list[str]:
        """Remove documents with all their chunks: by id, or by their `metadata["source"]`.

        Returns the ids of those that existed.
        """
        return await self._remove(ids, source)

    async def _get(self, ids: Sequence[str]) -> list[Document]:
        """Return documents with the text and metadata that were added, or parents, by id."""
        return await self._read(ids)

    delete, adelete = in_both_forms(_delete)
    get, aget = in_both_forms(_get)

    def as_tools(self) -> list[FunctionTool]:
        """Return tools with which an agent reads the index: search, grep, outline, read, expand.

        They are described in the documentation's page about agents.
        """
        return [
            FunctionTool.from_defaults(
                each.function, each.name, each.description, async_fn=each.async_function
            )
            for each in index_tools(self)
        ]

    async def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        results = await self._search(*self._prepare(query_bundle, {}))
        return list(map(self._result, results))

    _retrieve, _aretrieve = in_both_forms(_find)

    @override
    def _prepare(self, text: str | QueryBundle, options: Mapping[str, Any]) -> Prepared:
        bundle = text if isinstance(text, QueryBundle) else QueryBundle(text)
        set_now = {name: getattr(self, _attribute(name)) for name in LlamaIndexOptions.model_fields}
        with plain_errors(LlamaIndexOptions):
            LlamaIndexOptions(**set_now)
        names = {own: name for name, own in OPTION_NAMES.items()}
        renamed = {names.get(name, name): value for name, value in set_now.items()}
        query = Query.of(bundle.query_str, {**renamed, **options})
        # A vector in the bundle may be another retriever's, which leaves its own there.
        options = {"filters": self.filters, "embedding_strs": bundle.custom_embedding_strs}
        return query, options, self._rerank(bundle)

    def _rerank(self, bundle: QueryBundle) -> Rerank | None:
        reranker = self.reranker
        if not isinstance(reranker, BaseNodePostprocessor):
            return None if reranker is None else rerank_with(reranker)

        async def rerank(question: str, children: Sequence[Entry]) -> Sequence[tuple[int, Any]]:
            nodes = list(map(self._result, children))
            answer = await call_method(reranker, "postprocess_nodes", nodes, bundle)
            return read_order(children, [(each.text, each.score) for each in answer])

        return rerank

    @override
    def _open_stores(self, filters: Mapping[str, Any]) -> tuple[Docstore, ChildStore, Split]:
        if (own := filters.get("filters")) is not None:
            check_has(own, "filters", "filters as MetadataFilters of LlamaIndex")
        vectors = Vectors(self.embed_model, self.model_name, filters.get("embedding_strs"))
        children = make_child_store(self.vector_store, vectors, own)
        split = make_split({"parents": self.parent_parser, "children": self.child_parser})
        return make_docstore(self.docstore), children, split

    _entry = staticmethod(to_entry)
    _document = staticmethod(to_document)

    def _result(self, entry: Entry) -> NodeWithScore:
        score = entry.metadata.pop(own_key(entry.metadata, SCORE_KEY), None)
        return NodeWithScore(node=to_node(entry, self.id_key), score=score)


@check_keywords(
    ParentDocumentRetriever, LlamaIndexOptions, IndexOptions, synonyms=LLAMA_INDEX_NAMES
)
def parent_document_retriever(
    documents: Iterable[BaseNode] | None = None,
    *,
    path: str | Path | None = None,
    client: ClientAPI | None = None,
    embed_model: Any = None,
    vector_store: BasePydanticVectorStore | None = None,
    docstore: AnyDocstore | None = None,
    child_parser: NodeParser | None = None,
    parent_parser: NodeParser | EllipsisType | None = ...,
    retrieve: Retrieve | None = None,
    search_type: SearchType | None = None,
    smoothing: float | None = None,
    headings: bool | None = None,
    id_key: str = "parent_id",
    collection_name: str = "rag_splitters",
    model_name: str | None = None,
    reembed: bool = False,
    **options: Unpack[_FactoryOptions],
) -> ParentDocumentRetriever:
    """Set up a `ParentDocumentRetriever`, and add `documents` to it.

    By default, everything is kept in memory. To keep it on disk, pass a folder as `path`: children
    are stored in a Chroma database in `path/chroma`, parents in `path/parents`, and each
    `collection_name` is an index of its own. Only one process at a time may have the folder open.
    To share an index between processes, pass a `client` of a Chroma server (`chroma run`) and a
    `docstore` on a server; then `path` is a folder for this process's keyword index. For other
    vector stores, pass a `vector_store`.

    `embed_model` is a LlamaIndex or LangChain embedding model, or a function list[str] ->
    list[list[float]]. The default is `HashingEmbeddings`, which match words and not meaning. An
    index can only be opened with the model that it was written with; with `reembed=True`, all its
    documents are embedded anew with another one. A function without a name, such as a lambda, needs
    a `model_name` for an index that outlives the process. `child_parser` defaults to
    `RecursiveNodeParser(chunk_size=400, length_function="characters")`, and `parent_parser` to
    `AutoNodeParser` with 2,000 characters, which cuts each document by its kind and reads HTML and
    XML without their tags; `parent_parser=None` makes each document one parent.

    By default, a query returns "passages": the best children, joined with the neighbours in the
    document that they need. With `id_key="doc_id"`, it returns whole "parents", as
    `langchain_classic` does.

    `search_type`, `smoothing` and `headings` default to the values that retrieve best in the
    documentation's benchmarks: "hybrid", 0.6 and True. A `vector_store` that you pass is searched
    by "similarity" only, and without the other two. The other parameters are the retriever's.

    Raises ValueError for options that contradict each other; IndexMismatchError (a ValueError) for
    stores that belong to different indexes, or that another model wrote; FolderInUseError (a
    RuntimeError) for a folder that another process has open; and RefusedDocumentsError, whose
    `result` is the retriever, for documents that cannot be stored.
    """
    if vector_store is not None and client is not None:
        raise InputError("client would not be used: pass either client or vector_store")
    model = HashingEmbeddings() if embed_model is None else embed_model
    check_embedding_model(model, "embed_model")
    if not is_embedding_client(model):
        model = Embedder(model)  # a function, or a factory
    defaults = search_options(vector_store is None, search_type, smoothing, headings)
    with Shared(path, collection_name) as shared:
        if vector_store is None:
            from llama_index.vector_stores.chroma import ChromaVectorStore

            name = model_name or describe_model(model)
            _, collection = shared.open_collection(client, name, reembed=reembed)
            vector_store = ChromaVectorStore(chroma_collection=collection)
        if docstore is None:
            docstore = shared.open_docstore(SimpleKVStore)
        retriever = ParentDocumentRetriever(
            vector_store=vector_store,
            docstore=docstore,
            embed_model=model,
            child_parser=child_parser or RecursiveNodeParser(**CHILDREN),
            parent_parser=AutoNodeParser(**PARENTS)
            if isinstance(parent_parser, EllipsisType)
            else parent_parser,
            retrieve=retrieve or ("parents" if id_key == CLASSIC_ID_KEY else "passages"),
            id_key=id_key,
            model_name=model_name,
            **defaults,
            **options,
        )
        retriever.shared = shared
        return retriever.open(documents, reembed=reembed)
