"""Search small chunks, read what is around them: a durable index in a folder, without a model."""

import tempfile

from langchain_core.documents import Document

from rag_splitters.langchain import (
    RecursiveTextSplitter,
    SentenceTextSplitter,
    parent_document_retriever,
)

LIGHTHOUSE = """The lighthouse was built of granite in 1839. Its lamp burned whale oil.

In 1911 an electric lamp replaced the oil. The keeper kept the old one in his kitchen. Visitors may
see it on Sundays.

The fog horn is older than the pier. It sounds every thirty seconds in thick weather."""

BAKERY = """The bakery opens at five. Rye loaves rest for a night before they go into the oven.

On Fridays there are buns with cardamom. They are gone by nine, and nobody knows why."""

documents = [
    Document(page_content=LIGHTHOUSE, id="lighthouse.md", metadata={"kind": "museum"}),
    Document(page_content=BAKERY, id="bakery.md", metadata={"kind": "shop"}),
]

with tempfile.TemporaryDirectory() as folder:
    retriever = parent_document_retriever(
        documents,
        path=folder,  # Chroma for the children, SQLite for the parents; None keeps both in memory
        parent_splitter=RecursiveTextSplitter(chunk_size=200),
        child_splitter=SentenceTextSplitter(chunk_size=60),
        passage_size=120,
        k=1,
    )  # searches by vectors and keywords; search_type="similarity" uses only the vectors
    retriever.add_documents(documents)  # unchanged: nothing is embedded or written

    for question in ("What replaced the whale oil lamp?", "When are the cardamom buns gone?"):
        (passage,) = retriever.invoke(question)
        match = passage.matches[0]
        source = LIGHTHOUSE if passage.metadata["kind"] == "museum" else BAKERY
        print(question)
        print("  matched: ", source[match["start_index"] : match["end_index"]])
        print("  returned:", " ".join(passage.page_content.split()))

    print("as much as fits into 30 tokens:")
    for passage in retriever.invoke("What replaced the whale oil lamp?", k=4, max_tokens=30):
        print("  ", " ".join(passage.page_content.split()))
    whole = retriever.model_copy(update={"retrieve": "parents"})
    print("the whole parent:")
    print("  ", " ".join(whole.invoke("What replaced the whale oil lamp?")[0].page_content.split()))

    changed = Document(page_content="The bakery is closed for the summer.", id="bakery.md")
    changes = retriever.sync([documents[0], changed])  # removes all other documents
    assert (changes.changed, changes.unchanged, changes.deleted) == (
        ["bakery.md"],
        ["lighthouse.md"],
        [],
    )
    assert [each.page_content for each in retriever.get(["bakery.md"])] == [changed.page_content]
    retriever.delete(["bakery.md"])
    assert retriever.verify().is_sound
    retriever.close()
