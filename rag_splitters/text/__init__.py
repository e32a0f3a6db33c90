"""Measuring and cutting plain text.

Sizes and tokens, the boundaries between words, sentences and paragraphs, packing pieces into
chunks, stable ids and pages. Nothing here knows a strategy, a model or a framework.
"""
