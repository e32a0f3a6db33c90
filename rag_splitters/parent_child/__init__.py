"""Parent-child retrieval: small chunks are searched, the larger chunks that hold them are returned.

Without a framework: `plan` says what is written and removed, and in which order; `search` how
children are found and made results; `consistency` compares and mends; `index` is all of it
together, over the interfaces in `stores`. `langchain` and `llama_index` are the retrievers.
Stores of parents are in `sqlite`, `redis` and `postgres`.
"""
