"""Measuring and cutting plain text.

This folder holds sizes and tokens, the boundaries between words, sentences and paragraphs, the
packing of pieces into chunks, stable ids and pages. Nothing here depends on a strategy, a model or
a framework.
"""
