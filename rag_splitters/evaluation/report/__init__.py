"""Reporting: running a comparison, its verdict, and its forms (text, Markdown, HTML, JSON)."""
