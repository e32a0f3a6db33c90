"""Parent-child retrieval without a framework.

Small chunks are searched, and the larger chunks that contain them are returned. `index` has what
the retrievers of both frameworks share; it adds documents with `indexing`, answers questions with
`search`, and compares and repairs the stores with `consistency`. `stores` and `keywords` hold what
is stored. The errors that a caller may want to catch are imported from here.
"""

from rag_splitters.parent_child import errors
from rag_splitters.parent_child.errors import *

__all__ = errors.__all__
