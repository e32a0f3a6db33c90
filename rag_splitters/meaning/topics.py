"""Topic segments of a text: a topic model over its sentences, with scikit-learn."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_splitters.extras import needs
from rag_splitters.meaning.similarity import unit_vectors
from rag_splitters.text.terms import find_words, word_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MAX_TOPICS = 10
_MAX_TERMS = 20_000
_MAX_SEGMENT = 60  # sentences: limits the work for each sentence
_PENALTY = {"nmf": 1.8, "lda": 2.5}  # for each segment, in squared distances of unit vectors
_NAMED_TERMS = 5
_LDA_REACH = 2  # neighbours on each side that LDA reads together with a sentence


class Segment(NamedTuple):
    """Neighbouring sentences of a topic: the first of them, the topic, and its strongest terms."""

    first: int
    topic: int
    terms: list[str]


def find_segments(
    sentences: Sequence[str], *, model: str, n_topics: int | None, random_state: int
) -> list[Segment]:
    """Find the segments of a text; none if it has fewer than three sentences or no words.

    The terms are those of `rag_splitters.text.terms`. Topics are numbered in the order in which
    they appear; if `n_topics` is None, their number is a third of that of the sentences, from 2 to
    10. Time grows linearly with the number of sentences.

    Raises ImportError if scikit-learn is not installed.

    >>> find_segments(["No.", "Yes."], model="nmf", n_topics=None, random_state=0)
    []
    """
    if len(sentences) < 3:
        return []
    terms, spellings = _terms(sentences)
    count = n_topics or min(_MAX_TOPICS, max(2, len(sentences) // 3))
    count = min(count, len(sentences), len(spellings))
    if count < 2:
        return []
    vectors, weights, names = _fit(model, terms, count, random_state)
    starts = _partition(vectors, _PENALTY[model])
    topics = [int(vectors[a:b].sum(0).argmax()) for a, b in pairwise([*starts, len(sentences)])]
    numbers: dict[int, int] = {}
    segments: list[Segment] = []
    for start, topic in zip(starts, topics, strict=True):
        if topic not in numbers or segments[-1].topic != numbers[topic]:
            number = numbers.setdefault(topic, len(numbers))
            segments.append(Segment(start, number, _strongest(weights[topic], names, spellings)))
    return segments


def _terms(sentences: Sequence[str]) -> tuple[list[list[str]], dict[str, str]]:
    """Return the terms of each sentence, and the most frequent spelling of each term."""
    counters: dict[str, Counter[str]] = {}
    interned: dict[str, str] = {}
    rows: list[list[str]] = []
    for sentence in sentences:
        row: list[str] = []
        for word in find_words(sentence):
            terms = word_terms(word)
            for term in terms:
                term = interned.setdefault(term, term)  # keep one copy of each term in memory
                row.append(term)
                counters.setdefault(term, Counter())[term if len(terms) > 1 else word] += 1
        rows.append(row)
    return rows, {
        term: min(counter, key=lambda spelling: (-counter[spelling], spelling))
        for term, counter in counters.items()
    }


def _strongest(
    weights: NDArray[np.float64], names: Sequence[str], spellings: dict[str, str]
) -> list[str]:
    """Return the terms with the largest weights, in the spelling of the text."""
    import numpy as np

    order = np.argsort(-weights, kind="stable")[:_NAMED_TERMS]
    return [spellings[names[index]] for index in order if weights[index] > 0]


def _fit(
    model: str, terms: list[list[str]], count: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], Sequence[str]]:
    """Return a unit vector for each sentence, the weights of terms in topics, and the terms.

    It runs in one thread and rounds the numbers, so that they are the same on every machine.
    """
    import numpy as np

    with needs("TopicChunker needs scikit-learn", "topics"):
        from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
        from threadpoolctl import threadpool_limits
    counter = CountVectorizer(analyzer=list, max_features=_MAX_TERMS)
    counts = counter.fit_transform(terms).astype(float)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model that has not converged is good enough
        if model == "nmf":
            matrix = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
            vectors, weights = _nmf(matrix, count, seed)
        else:
            vectors, weights = _lda(counts, count, seed)
    names = counter.get_feature_names_out().tolist()
    return np.round(unit_vectors(vectors), 6), np.round(weights, 6), names


def _nmf(matrix: Any, count: int, seed: int) -> tuple[Any, Any]:
    from sklearn.decomposition import NMF

    fitted = NMF(min(count, *matrix.shape), init="nndsvd", random_state=seed, max_iter=200)
    return fitted.fit_transform(matrix), fitted.components_


def _lda(counts: Any, count: int, seed: int) -> tuple[Any, Any]:
    """Fit LDA to each sentence with its neighbours: a sentence alone is too short."""
    from scipy.sparse import diags_array
    from sklearn.decomposition import LatentDirichletAllocation

    size = counts.shape[0]
    near = range(-_LDA_REACH, _LDA_REACH + 1)
    around = diags_array([1.0] * len(near), offsets=list(near), shape=(size, size))
    smoothed = (around @ counts).tocsr()
    fitted = LatentDirichletAllocation(count, random_state=seed, max_iter=20)
    return fitted.fit_transform(smoothed), fitted.components_


def _partition(vectors: NDArray[np.float64], penalty: float) -> list[int]:
    """Return the first sentences of the segments closest to their means, by squared distance.

    Every segment costs `penalty`. Dynamic programming over segments of bounded length.
    """
    import numpy as np

    count, width = vectors.shape
    sums = np.vstack([np.zeros(width), np.cumsum(vectors, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum((vectors * vectors).sum(axis=1))])
    cost, back = np.zeros(count + 1), np.zeros(count + 1, dtype=np.int64)
    for end in range(1, count + 1):
        begin = max(0, end - _MAX_SEGMENT)
        sizes = np.arange(end - begin, 0, -1)
        means = ((sums[end] - sums[begin:end]) ** 2).sum(axis=1) / sizes
        costs = np.round(cost[begin:end] + squares[end] - squares[begin:end] - means, 9)
        best = int(costs.argmin())
        cost[end], back[end] = costs[best] + penalty, begin + best
    starts = [int(back[count])]
    while starts[-1]:
        starts.append(int(back[starts[-1]]))
    return starts[::-1]
