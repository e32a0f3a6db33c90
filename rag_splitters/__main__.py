"""`python -m rag_splitters` is `rag-splitters`."""

from rag_splitters.cli import main

if __name__ == "__main__":
    main()
