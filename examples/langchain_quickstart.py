"""Split LangChain documents: one line changes, and every position is right."""

from langchain_core.documents import Document

from rag_splitters.langchain import RecursiveTextSplitter, SentenceTextSplitter

TEXT = """The harbour opened in 1871. It was small, and it was cold.

The harbour closed in 1954. It was small, and it was cold. Nobody minded."""

document = Document(page_content=TEXT, metadata={"source": "harbour.md"})

# before: RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=10, add_start_index=True)
splitter = RecursiveTextSplitter(chunk_size=60, chunk_overlap=10)

for chunk in splitter.split_documents([document]):
    start, end = chunk.metadata["start_index"], chunk.metadata["end_index"]
    assert TEXT[start:end] == chunk.page_content
    print(f"{start:3} to {end:3}  {chunk.page_content!r}")

# Sizes in tokens, whole sentences: the same class of object, usable wherever LangChain accepts one.
by_tokens = SentenceTextSplitter(chunk_size=16, length_function="tokens")
print(by_tokens.split_text(TEXT))
