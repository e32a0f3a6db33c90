"""Writes a public set of questions about code as `benchmarks/retrieval.py` reads it.

    python benchmarks/code_questions.py FOLDER DATA

FOLDER gets `corpora/*.md` and `questions.csv`. DATA is the folder skills/contextual-embeddings/data
in the repository anthropics/anthropic-cookbook (commit 4b36a1e): 248 questions about 90 files of
Rust and other code, each answered by one or more of 737 chunks. The command prints the budgets of
as many tokens as 5, 10 and 20 chunks have.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from rag_splitters.text.sizing import text_length


def write_set(folder: Path, data: Path) -> None:
    """Write the public set, whose chunks are known by their file and their number there."""
    chunks: dict[tuple[str, int], dict[str, object]] = {}
    names: dict[str, str] = {}
    sizes = []
    for file in json.loads((data / "codebase_chunks.json").read_text(encoding="utf-8")):
        text, position = file["content"], 0
        names[file["original_uuid"]] = file["doc_id"]
        path = folder / "corpora" / f"{file['doc_id']}.md"
        path.write_text(text, encoding="utf-8", newline="")
        for chunk in file["chunks"]:
            content = chunk["content"]
            position = text.index(content, position)
            chunks[file["original_uuid"], chunk["original_index"]] = {
                "content": content,
                "start_index": position,
                "end_index": position + len(content),
            }
            sizes.append(text_length(content, "tokens"))
    questions = []
    for line in (data / "evaluation_set.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        places = sorted(map(tuple, entry["golden_chunk_uuids"]))
        references = [chunks[place] for place in places]
        questions.append([entry["query"], json.dumps(references), names[places[0][0]]])
    with (folder / "questions.csv").open("w", encoding="utf-8", newline="") as output:
        csv.writer(output).writerows([["question", "references", "corpus_id"], *questions])
    budgets = (round(count * sum(sizes) / len(sizes)) for count in (5, 10, 20))
    print(f"{len(questions)} questions; 5, 10 and 20 chunks: --budgets", *budgets)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="write questions about code")
    parser.add_argument("folder", type=Path, help="the folder to write")
    parser.add_argument("data", type=Path, help="the folder with the public set")
    options = parser.parse_args()
    (options.folder / "corpora").mkdir(parents=True, exist_ok=True)
    write_set(options.folder, options.data)
