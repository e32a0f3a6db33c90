"""Files of every kind as texts, with positions and pages.

Loaders and readers of the front ends, the command line and the playground all read files here.
"""
