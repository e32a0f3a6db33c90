"""The files here are read by mypy, and never run: pytest must not import them."""

collect_ignore_glob = ["*.py"]
