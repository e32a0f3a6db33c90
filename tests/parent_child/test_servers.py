"""The servers that the tests start: each answers, and keeps its data over kill -9."""

from __future__ import annotations

import chromadb
import psycopg
import pytest
import redis

from tests.support.servers import ChromaServer, PostgresServer, RedisServer

pytestmark = pytest.mark.server


def test_redis_keeps_what_it_acknowledged_over_a_kill() -> None:
    with RedisServer() as server:
        redis.Redis.from_url(server.url).set("key", "value")
        server.kill()
        with pytest.raises(redis.ConnectionError):
            server.ask()
        server.start()
        assert redis.Redis.from_url(server.url).get("key") == b"value"


def test_postgres_keeps_what_it_acknowledged_over_a_kill() -> None:
    with PostgresServer() as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            server.ask()
        server.start()
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT n FROM kept").fetchall() == [(1,)]


def test_chroma_keeps_what_it_acknowledged_over_a_kill() -> None:
    with ChromaServer() as server:
        client = chromadb.HttpClient(server.host, server.port)
        client.create_collection("kept").add(ids=["a"], embeddings=[[1.0, 0.0]], documents=["text"])
        server.kill()
        server.start()
        client = chromadb.HttpClient(server.host, server.port)
        assert client.get_collection("kept").get()["documents"] == ["text"]


def test_fixtures_hand_out_clean_places(
    redis_url: str, postgres_url: str, chroma_server: tuple[str, int], collection_name: str
) -> None:
    assert redis.Redis.from_url(redis_url).dbsize() == 0
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE own (n INT)")
        found = connection.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'own'")
        assert found.fetchall()[0][0].startswith("test_")
    host, port = chroma_server
    names = [found.name for found in chromadb.HttpClient(host, port).list_collections()]
    assert collection_name not in names
