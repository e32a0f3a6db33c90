"""Parse LlamaIndex documents in an ingestion pipeline: one line changes."""

from llama_index.core import Document
from llama_index.core.ingestion import IngestionPipeline

from rag_splitters.llama_index import SentenceNodeParser

TEXT = """The tram reached the hill in 1902. Horses had pulled it before. They were thanked.

Electric trams were faster. They were louder, too. The hill did not complain."""

# before: SentenceSplitter(chunk_size=20, chunk_overlap=5)
parser = SentenceNodeParser(chunk_size=20, overlap_sentences=1, length_function="tokens")

pipeline = IngestionPipeline(transformations=[parser])
for node in pipeline.run(documents=[Document(text=TEXT, id_="tram.md")]):
    assert TEXT[node.start_char_idx : node.end_char_idx] == node.text
    print(f"{node.start_char_idx:3} to {node.end_char_idx:3}  {node.text!r}")
