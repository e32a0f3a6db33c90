"""Parent-child retrieval in a LlamaIndex query engine, over a folder; no model needed."""

import tempfile

from llama_index.core import Document
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

from rag_splitters.llama_index import (
    RecursiveNodeParser,
    SentenceNodeParser,
    parent_document_retriever,
)

FERRY = """The ferry leaves the north pier at seven and at noon. In fog it stays in the harbour.

Bicycles travel free of charge. Cars need a reservation, which the kiosk writes by hand."""

MUSEUM = """The museum shows forty ship models. The oldest is the brig Aurora, carved in 1791.

It is closed on Mondays. Children under twelve pay nothing."""

documents = [
    Document(text=FERRY, id_="ferry.md", metadata={"title": "Ferry"}),
    Document(text=MUSEUM, id_="museum.md", metadata={"title": "Museum"}),
]

with tempfile.TemporaryDirectory() as folder:
    retriever = parent_document_retriever(
        documents,
        path=folder,  # Chroma for the children, SQLite for the parents; None keeps both in memory
        parent_parser=RecursiveNodeParser(chunk_size=200, length_function="characters"),
        child_parser=SentenceNodeParser(chunk_size=60, length_function="characters"),
        similarity_top_k=1,
    )
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())  # pass your own LLM here

    for question in ("Do bicycles cost anything?", "Which ship model is the oldest?"):
        (result,) = engine.query(question).source_nodes
        source = FERRY if result.node.metadata["title"] == "Ferry" else MUSEUM
        match = result.node.matches[0]
        print(question)
        print("  matched: ", source[match["start_index"] : match["end_index"]])
        print("  returned:", " ".join(result.node.text.split()))
        assert result.node.text == source[result.node.start_char_idx : result.node.end_char_idx]

    changes = retriever.sync(documents[:1])  # the index holds exactly these documents now
    assert changes.deleted == ["museum.md"]
    retriever.close()
