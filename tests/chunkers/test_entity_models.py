"""EntityChunker with real Hugging Face and GLiNER models, made here from a few weights.

Run with transformers 5.23.0 and 5.16.1, torch 2.13.0 and gliner 0.2.29. They are too large for the
gate: .ci/nightly installs them for this file (pip install torch transformers gliner).
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from rag_splitters import EntityChunker
from rag_splitters.meaning.entities import describe_recogniser, find_mentions
from rag_splitters.span import Source
from tests.chunkers.test_entity import names

pytestmark = pytest.mark.nightly

TEXT = "Ada Lovelace and Bern met near New York by night. "
TAGS = ("O", "B-NAME", "I-NAME")
TAG_OF = {"ada": 1, "lovelace": 2, "bern": 1, "new": 1, "york": 2}
WORDS = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", *TAG_OF, "and", "met", "near", "by", "night", "."]


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("transformers", reason="needs torch and transformers, 800 MB")
    return pytest.importorskip("torch", reason="needs torch and transformers, 800 MB")


def tokenizer(most: int) -> Any:
    """A fast tokenizer that knows the words of the text, and says how many tokens are read."""
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token=WORDS[0]))
    plain.normalizer = normalizers.Lowercase()
    plain.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    plain.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    special = dict(zip(("unk_token", "cls_token", "sep_token", "pad_token"), WORDS, strict=False))
    return PreTrainedTokenizerFast(tokenizer_object=plain, model_max_length=most, **special)


def classifier(torch: Any, aggregation: str) -> Any:
    """A pipeline whose model reads 12 tokens, and knows each word's tag by its embedding."""
    from transformers import BertConfig, BertForTokenClassification, pipeline

    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=len(TAGS),
        num_hidden_layers=0,
        num_attention_heads=1,
        max_position_embeddings=12,
        id2label=dict(enumerate(TAGS)),
        label2id={tag: number for number, tag in enumerate(TAGS)},
        name_or_path="someone/tiny",
    )
    model = BertForTokenClassification(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for number, word in enumerate(WORDS):
            model.bert.embeddings.word_embeddings.weight[number, TAG_OF.get(word, 0)] = 1
        model.bert.embeddings.LayerNorm.weight.fill_(1)
        model.classifier.weight.copy_(9 * torch.eye(len(TAGS)))
    return pipeline(
        "token-classification",
        model=model,
        tokenizer=tokenizer(12),
        aggregation_strategy=aggregation,
    )


@pytest.mark.parametrize("aggregation", ["none", "simple", "first"])
def test_entity_with_a_real_hugging_face_pipeline(torch: Any, aggregation: str) -> None:
    pipeline = classifier(torch, aggregation)
    texts = list(map(Source, [60 * TEXT, "", "Bern", "."]))
    assert find_mentions(pipeline, texts, []) == find_mentions(names, texts, [])
    assert describe_recogniser(pipeline) == "recogniser:transformers:someone/tiny"
    chunker = EntityChunker(ner=pipeline, chunk_size=120)
    spans = EntityChunker(ner=names, chunk_size=120).spans(texts[0].text)
    assert chunker.spans(texts[0].text) == spans
    assert pickle.loads(pickle.dumps(chunker)).spans(texts[0].text) == spans


def gliner(torch: Any, folder: Path, seed: int) -> Any:
    """A GLiNER over a tiny encoder; its weights are random, and so is what it finds."""
    from transformers import BertConfig, BertModel

    library = pytest.importorskip("gliner", reason="needs gliner, torch and transformers, 900 MB")
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer(64).save_pretrained(folder)
    settings = library.GLiNERConfig(
        model_name=str(folder), hidden_size=16, max_width=3, span_mode="markerV0", dropout=0.0
    )
    return library.GLiNER.from_config(settings).eval()


def test_entity_with_a_real_gliner(torch: Any, tmp_path: Path) -> None:
    ner = gliner(torch, tmp_path, seed=0)
    labels = ("NAME", "PLACE")
    answer = ner.predict_entities(TEXT, list(labels))
    assert all(TEXT[each["start"] : each["end"]] == each["text"] for each in answer)
    short, long = find_mentions(ner, [Source(TEXT), Source(60 * TEXT)], labels)
    assert short == [(each["start"], each["end"], each["label"]) for each in answer] != []
    assert long[-1].end > 59 * len(TEXT), "it would drop the rest"


def test_gliners_over_the_same_encoder_are_told_apart(torch: Any, tmp_path: Path) -> None:
    """A GLiNER knows the name of the encoder that it was made from, and none of its own."""
    one, other = gliner(torch, tmp_path, seed=0), gliner(torch, tmp_path, seed=1)
    assert describe_recogniser(one) != describe_recogniser(other)
    one.save_pretrained(tmp_path / "saved")
    again = type(one).from_pretrained(tmp_path / "saved")
    assert describe_recogniser(again) == describe_recogniser(one)
