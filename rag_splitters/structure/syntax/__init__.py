"""Source code by tree-sitter: languages, trees, and where they may be cut."""
