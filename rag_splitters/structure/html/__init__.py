"""HTML: its tree of elements, and what is read from it: main content, blocks, tables and text.

`tree` is the only code that knows how elements nest. Everything else asks it.
"""
