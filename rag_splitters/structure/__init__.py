"""What a text is made of: blocks, tables, syntax, images, and the outline of its headings.

Everything here reads a text and reports where its parts are. It makes no decision about chunks,
except how blocks and tables can be cut.
"""
