"""Semantic chunks with OpenAI's models: the real ones, or a server on this machine without a key.

With OPENAI_API_KEY set, the texts go to OpenAI. Without it they go to a small server on loopback
that speaks OpenAI's protocol and embeds by hashing words, which is enough to see the calls.
"""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from langchain_core.documents import Document
from langchain_openai import OpenAIEmbeddings

from rag_splitters.langchain import SemanticTextSplitter
from rag_splitters.models import HashingEmbeddings

TEXT = """The tram up the hill was opened in the spring of 1902, with six cars. Before it came,
horses had pulled the cars up the hill for thirty years. The bakery keeps its sourdough in a stone
jar behind the oven. The sourdough is fed twice a day, and the bakery would not sell bread without
it. Every winter the whales sing under the ice of the bay. The song of the whales changes from
winter to winter, and nobody knows why."""


class Server(BaseHTTPRequestHandler):
    """Answers POST /embeddings as OpenAI does."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        vectors = HashingEmbeddings(dimensions=256).embed_documents(request["input"])
        data = [
            {"object": "embedding", "index": number, "embedding": vector}
            for number, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        answer = {"object": "list", "model": request["model"], "data": data, "usage": usage}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        print(f"one request with {len(request['input'])} texts")

    def log_message(self, *args: object) -> None:
        pass


def embeddings() -> OpenAIEmbeddings:
    """The real model if there is a key, else the server on this machine."""
    if os.environ.get("OPENAI_API_KEY"):
        return OpenAIEmbeddings(model="text-embedding-3-small")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return OpenAIEmbeddings(
        base_url=f"http://127.0.0.1:{server.server_port}",
        api_key="none",  # type: ignore[arg-type]
        check_embedding_ctx_length=False,  # send texts, not token numbers
        model_kwargs={"encoding_format": "float"},
    )


splitter = SemanticTextSplitter(
    embeddings=embeddings(), buffer_size=0, number_of_chunks=3, min_chunk_size=0
)
for chunk in splitter.split_documents([Document(page_content=TEXT, id="notes.md")]):
    start, end = chunk.metadata["start_index"], chunk.metadata["end_index"]
    assert TEXT[start:end] == chunk.page_content
    print(f"{start:3} to {end:3}  {' '.join(chunk.page_content.split())}")
