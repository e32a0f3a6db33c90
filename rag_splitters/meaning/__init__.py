"""Algorithms about what a text means, shared by several strategies.

Here belong units and windows of sentences, similarity of vectors, topics, entities, propositions
and the situating of chunks. A strategy's own class is in `rag_splitters.chunkers`.
"""
