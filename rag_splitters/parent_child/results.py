"""What the metadata of a result say: score, matches, and a passage's parents and header."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

# A score is a number and the matches are JSON, because the frameworks rebuild results from text and
# metadata (caches, compressors, vector stores), and a vector store accepts nothing nested. A field
# of a subclass would be lost on the way.
SCORE_KEY, MATCHES_KEY = "score", "matches"
_TAKEN = "_"
"""Stands before a key of ours if the user's metadata has one of that name: theirs stays."""
PARENT_IDS_KEY = "parent_ids"
"""The key in a passage's metadata that holds the ids of all its parents, if it has several."""

HEADER_KEY = "table_header"
"""The key in a passage's metadata that holds the header that was put before its text."""


def own_key(metadata: Mapping[str, Any], key: str) -> str:
    """Return where the metadata of a result have a value of ours: it has the most underscores.

    >>> own_key({"score": 7, "_score": 0.5}, "score"), own_key({"score": 0.5}, "score")
    ('_score', 'score')
    """
    names = [each for each in metadata if re.fullmatch(f"{_TAKEN}*{re.escape(key)}", str(each))]
    return max(names, key=len, default=key)


def free_key(users: Mapping[str, Any], key: str) -> str:
    """Return where a value of ours goes, beside the metadata that the user has.

    >>> [free_key(users, "score") for users in ({}, {"score": 7}, {"_score": 7})]
    ['score', '_score', '__score']
    """
    name = own_key(users, key)
    return _TAKEN + name if name in users else key


def without_matches(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a result but for its score and matches, which differ by question."""
    ours = [own_key(metadata, key) for key in (SCORE_KEY, MATCHES_KEY)]
    return {key: value for key, value in metadata.items() if key not in ours}


def read_matches(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the matches in the metadata of a result; none if it has none.

    >>> read_matches({"matches": '[{"score": 0.5}]'})
    [{'score': 0.5}]
    """
    matches: list[dict[str, Any]] = json.loads(metadata.get(own_key(metadata, MATCHES_KEY), "[]"))
    return matches
