"""What a text is made of: blocks, tables, syntax, images, and the outline of its headings.

The code here reads a text and reports the positions of its parts. It makes no decisions about
chunks, except for how blocks and tables can be cut.
"""
