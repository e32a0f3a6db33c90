"""Parent-child retrieval without a framework.

Small chunks are searched, and the larger chunks that contain them are returned. `index` has what
the retrievers of both frameworks do; it adds documents with `indexing`, answers questions with
`search`, and compares and repairs the stores, which look like `stores` says, with `consistency`.
"""
