"""Parent-child retrieval: small chunks are searched, the larger chunks that hold them are returned.

`plan` and `search` say what is written, removed and read in which order and know no framework;
`sqlite` keeps the parents of a folder; `langchain` is the retriever for LangChain.
"""
