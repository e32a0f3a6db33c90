"""What a strategy is: its base classes, its name, its help texts and how it behaves in a front end.

`chunker.py` is all that a strategy of your own needs to know.
"""
