"""Algorithms about what a text means, shared by several strategies.

This folder holds units and windows of sentences, similarity of vectors, topics, entities,
propositions and the contexts of chunks. The strategies themselves are in `rag_splitters.chunkers`.
"""
