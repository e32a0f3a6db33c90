"""Tables: rows of cells with exact positions.

This folder has the tables of Markdown, CSV and TSV, and code that writes and cuts any table. Those
of HTML are read in `structure.html`; `structure.text_tables` finds all of them in a text.
"""
