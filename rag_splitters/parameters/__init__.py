"""What users pass: the types of parameters, their checks and error messages, and functions by name.

Nothing here knows what a strategy is or how a text is cut.
"""
