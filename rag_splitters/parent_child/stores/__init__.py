"""The stores: rows of text by key, children with their vectors, and all that one operation uses.

Each file but `children` and `stores` is one kind of store, of which only it imports the client.
"""
