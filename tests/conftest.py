"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import settings

from tests.servers import (  # noqa: F401
    chroma_process,
    chroma_server,
    collection_name,
    postgres_process,
    postgres_url,
    redis_process,
    redis_url,
)
from tests.stores import open_store, place  # noqa: F401

collect_ignore = ["data"]  # documents, some of which are Python

settings.register_profile("ci", derandomize=True, max_examples=60, print_blob=True)
settings.register_profile("quick", derandomize=True, max_examples=25, print_blob=True)
settings.register_profile("dev", max_examples=100)
settings.register_profile("thorough", max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))
