"""Parent-child retrieval of many children: memory stays flat, and no batch exceeds the store's.

CHILDREN sets how many there are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHILDREN = int(os.environ.get("CHILDREN", "30000"))
DIMENSIONS = 16
# What Chroma's index holds for each child: its vector, and links to 2 x 16 neighbours.
INDEXED = DIMENSIONS * 4 + 2 * 16 * 4

SCRIPT = """
import json, resource, sys, zlib
from pathlib import Path
import numpy as np
from chromadb import Collection
from langchain_core.documents import Document
from rag_splitters.langchain import RecursiveTextSplitter
from rag_splitters.langchain import parent_document_retriever

folder, children, dimensions = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
sizes = []
upsert = Collection.upsert

def counting(self, ids, **rows):
    sizes.append(len(ids))
    return upsert(self, ids, **rows)

Collection.upsert = counting

def vectors(texts):
    return [np.random.default_rng(zlib.crc32(t.encode())).standard_normal(dimensions).tolist()
            for t in texts]

def documents(start, count):
    for number in range(start, start + count):
        yield Document(id=str(number), page_content=" ".join(
            f"Child w{number}x{part} of this document, made long by words." for part in range(100)))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

retriever = parent_document_retriever(
    path=folder, embeddings=vectors,
    child_splitter=RecursiveTextSplitter(chunk_size=55),
    parent_splitter=RecursiveTextSplitter(chunk_size=600))
collection = retriever.vectorstore._collection
peaks, counts = [], []
for start, count in ((0, children // 400), (children // 400, children // 100 - children // 400)):
    retriever.add_documents(documents(start, count))
    peaks.append(peak())
    counts.append(collection.count())
asked = f"w{children // 100 - 1}x99"
found = any(asked in parent.page_content for parent in retriever.invoke(asked))
print(json.dumps({"peaks": peaks, "counts": counts, "sizes": sizes, "found": found,
                  "limit": collection._client.get_max_batch_size()}))
"""


@pytest.mark.nightly
def test_memory_does_not_grow_with_the_number_of_children(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "index"), str(CHILDREN)]
    done = subprocess.run(
        [*command, str(DIMENSIONS)], capture_output=True, text=True, check=True, timeout=900
    )
    told = json.loads(done.stdout)
    (quarter, whole), (few, many) = told["peaks"], told["counts"]
    assert many >= CHILDREN
    assert 3.5 < many / few < 4.5
    assert max(told["sizes"]) <= min(told["limit"], 1000)
    assert sum(told["sizes"]) == many
    assert told["found"]
    grown = (whole - quarter) - (many - few) * INDEXED
    assert grown < 150e6, f"{grown / 1e6:.0f} MB more for {many - few} more children"
