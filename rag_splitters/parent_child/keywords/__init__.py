"""The keyword index: the words and the metadata of the children, in a SQLite file or in memory.

It ranks children by their words and evaluates filters. It reads no store.
"""
