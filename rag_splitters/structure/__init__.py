"""What a text is made of: blocks, tables, syntax, images, and the outline of its headings.

Everything here reads a text and says where its parts are. Chunkers decide what to do with them.
"""
