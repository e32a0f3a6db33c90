"""Search small chunks, read larger ones: LlamaIndex's AutoMergingRetriever on a tree of chunks."""

import chromadb
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.node_parser import get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.vector_stores.chroma import ChromaVectorStore

from rag_splitters.llama_index import HashingEmbedding, HierarchicalNodeParser

HANDBOOK = """# Lighthouse handbook

## The lamp

The lamp is lit at dusk. Its wick is trimmed every four hours. The spare wick lies in the drawer.

The lens is wiped with a dry cloth. The lamp must be out when the lens is wiped.

## The fog horn

The fog horn sounds every thirty seconds. It needs twenty minutes to build up pressure.
"""

parser = HierarchicalNodeParser(emit="all", chunk_size=100, length_function="characters")
nodes = parser.get_nodes_from_documents([Document(text=HANDBOOK, id_="handbook.md")])

docstore = SimpleDocumentStore()
docstore.add_documents(nodes)  # all levels, so that parents can be looked up
collection = chromadb.EphemeralClient().create_collection("leaves")
storage = StorageContext.from_defaults(
    docstore=docstore, vector_store=ChromaVectorStore(chroma_collection=collection)
)
index = VectorStoreIndex(
    get_leaf_nodes(nodes), storage_context=storage, embed_model=HashingEmbedding()
)

retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=3), storage)
for result in retriever.retrieve("When is the wick of the lamp trimmed, and the lens wiped?"):
    start, end = result.node.start_char_idx, result.node.end_char_idx
    assert HANDBOOK[start:end] == result.node.text
    print(f"{start} to {end}, under {result.node.metadata['headings']}:")
    print(result.node.text, end="\n\n")
