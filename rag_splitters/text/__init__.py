"""Measuring and cutting plain text.

This folder holds sizes and tokens, the boundaries between words, sentences and paragraphs, the
packing of pieces into chunks, and the places of a text in its file. Nothing here depends on a
strategy, a model or a framework.
"""
