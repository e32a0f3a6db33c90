"""A custom skill for Azure AI Search: a server that replaces the Text Split skill.

Start it with `rag-splitters serve-skill`, with `serve_skill()`, or on a server of your own
(`create_skill_app()`). It follows the contract of the Custom Web API skill, and its inputs,
parameters and outputs have the names of those of the Text Split skill. Needs the extra `azure`.
"""

from __future__ import annotations

from rag_splitters.azure.serving import create_skill_app, serve_skill

__all__ = ["create_skill_app", "serve_skill"]
