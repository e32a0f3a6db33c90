"""Tables: rows of cells with exact positions.

This folder has the tables of Markdown, CSV and TSV, and code that writes and cuts any table. Those
of HTML are read in `structure.html`; `structure.table_finding` finds all of them in a text.
"""
