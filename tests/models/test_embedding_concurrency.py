"""Embedding requests go side by side, in synchronous use as well, and within a limit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_openai import OpenAIEmbeddings

from rag_splitters import ClusterChunker, EmbeddingChunker, SemanticChunker
from tests.support.openai_server import Fault, OpenAIServer
from tests.support.splitting import asplit_texts, split_texts

TEXT = " ".join(f"Keeper {number} wrote of ships in the old harbour." for number in range(60))


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("limit", "busiest"), [(None, 4), (2, 2), (1, 1)])
@pytest.mark.parametrize("kind", [SemanticChunker, EmbeddingChunker, ClusterChunker])
def test_embedding_requests_go_side_by_side(
    kind: Any, limit: int | None, busiest: int, is_async: bool
) -> None:
    with OpenAIServer() as server:
        server.faults = [Fault(delay=0.1)] * 12
        model = OpenAIEmbeddings(
            base_url=server.url, api_key="sk-any", chunk_size=6, check_embedding_ctx_length=False
        )
        chunker = kind(embeddings=model, max_concurrency=limit)
        spans = (
            asyncio.run(asplit_texts(chunker, [TEXT])) if is_async else split_texts(chunker, [TEXT])
        )
        assert spans[0]
        assert len(server.requests) == 10
        assert server.busiest == busiest
