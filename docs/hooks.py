"""What MkDocs does to the pages of this folder.

A comment in a page is replaced by what the package itself says:

- `<!-- parameters: RecursiveChunker -->`: a table of the strategy's parameters.
- `<!-- strategies -->`: a table of all strategies, with links to their pages.
- `<!-- query-options -->`: a table of the options of a query, with their names in LlamaIndex.
- `<!-- reference: rag_splitters.testing -->`: the reference of all public names of a module; with
  names behind it, of these only.
- `<!-- pages: rag_splitters.langchain -->`: a table of all public names of a module, each of which
  gets a page of its own with its reference.
- `<!-- picture: {"strategy": "sentence", "chunk_size": 200} -->`: the text in `sample.txt` in
  colours, as this strategy cuts it.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from importlib import import_module
from inspect import isfunction, signature
from pathlib import Path
from typing import Any

from griffe import Class, Extension, Function, Object, Parameter, ParameterKind, Parameters
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

import rag_splitters
from rag_splitters.chunkers import CATALOGUE
from rag_splitters.chunkers.by_name import build_chunker, default_as_python, parameter_docs
from rag_splitters.contract.chunker import Chunker
from rag_splitters.parameters.descriptions import field_descriptions
from rag_splitters.parent_child.opening import IndexOptions
from rag_splitters.parent_child.options import OPTION_NAMES, QueryOptions

_DIRECTIVE = re.compile(
    r"^<!-- (parameters|strategies|query-options|reference|pages|picture)(?:: (.*?))? -->$",
    re.MULTILINE,
)
_DOCTEST = re.compile(r"^>>> .*(?:\n(?!\n).*)*", re.MULTILINE)
_SEVERAL_NAMES = re.compile(
    r"^(?P<indent> +)(?P<names>(?:\w+,\s+)+\w+): (?P<meaning>.*(?:\n(?P=indent) +.*)*)",
    re.MULTILINE,
)
_PYCON = r"```pycon\n\g<0>\n```"
_LONGEST_DEFAULT = 60
_SAMPLE = Path(__file__).parent / "sample.txt"
_pages: list[Page] = []


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the comments."""
    return _DIRECTIVE.sub(lambda match: _DIRECTIVES[match[1]](match[2] or ""), markdown)


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> None:
    """Add a page for each name of the modules that have pages."""
    for file in list(files.documentation_pages()):
        for match in _DIRECTIVE.finditer(file.content_string):
            if match[1] == "pages":
                folder = file.src_uri.removesuffix(".md")
                for name in import_module(match[2]).__all__:
                    page = f"# {name}\n\n<!-- reference: {match[2]} {name} -->\n"
                    files.append(File.generated(config, f"{folder}/{name}.md", content=page))


def on_nav(nav: Navigation, **_: Any) -> None:
    """Keep the order of the pages for `on_post_build`."""
    _pages[:] = nav.pages


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    """Write what language models read: a list of the pages, and all of them as one text."""
    lines, texts = [f"# {config.site_name}", "", f"> {config.site_description}"], []
    section = ""
    for page in _pages:
        title = page.ancestors[-1].title if page.ancestors else "Guides"
        if title != section:
            lines += ["", f"## {title}", ""]
            section = title
        lines.append(f"- [{page.title}]({page.canonical_url})")
        if "\n::: " not in (page.markdown or ""):  # the reference exists only as HTML
            texts.append(page.markdown or "")
    site = Path(config.site_dir)
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(texts), encoding="utf-8")


def on_post_page(output: str, **_: Any) -> str:
    """Name the theme's search for screen readers."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def parameter_table(name: str) -> str:
    """The parameters of the strategy with this name in Markdown."""
    return table_of(getattr(rag_splitters, name))


def table_of(kind: type[Chunker]) -> str:
    """A strategy's parameters in Markdown, and below them the defaults that are too long."""
    rows, long_defaults = ["| parameter | default | meaning |", "|---|---|---|"], []
    for parameter, (default, meaning) in parameter_docs(kind).items():
        is_required = kind.model_fields[parameter].is_required()
        shown = "required" if is_required else f"`{default_as_python(default)}`"
        if isinstance(default, str) and len(shown) > _LONGEST_DEFAULT:
            long_defaults.append(f'\n??? note "Default of `{parameter}`"\n\n{_fenced(default)}')
            shown = "see below"
        rows.append(f"| `{parameter}` | {_cell(shown)} | {_cell(meaning)} |")
    table = ['<div class="parameters" markdown>', "", *rows, "", "</div>"]
    return "\n".join([*table, *long_defaults])


def _cell(text: str) -> str:
    return _as_markdown(text).replace("|", "\\|")


def _as_markdown(text: str) -> str:
    """A description in which `<name>` is no HTML."""
    return re.sub(r"(`[^`]*`)|<", lambda match: match[1] or "&lt;", text)


def _fenced(text: str) -> str:
    lines = ["```text", *text.splitlines(), "```"]
    return "\n".join(f"    {line}".rstrip() for line in lines)


def strategy_table(_: str = "") -> str:
    """All strategies with the first sentence of their documentation."""
    rows = ["| strategy | what it does |", "|---|---|"]
    for name, kind in CATALOGUE.items():
        summary = str(kind.__doc__).split("\n\n")[0]
        stem = kind.__name__.removesuffix("Chunker")
        rows.append(f"| [{stem}]({name}.md) | {_cell(' '.join(summary.split()))} |")
    return "\n".join(rows)


def query_option_table(_: str = "") -> str:
    """The options of a query in Markdown."""
    rows = ["| option | in LlamaIndex | default | meaning |", "|---|---|---|---|"]
    for name, meaning in field_descriptions(QueryOptions).items():
        default = f"`{default_as_python(QueryOptions.model_fields[name].default)}`"
        other = f"`{OPTION_NAMES[name]}`" if name in OPTION_NAMES else "the same"
        rows.append(f"| `{name}` | {other} | {default} | {_cell(' '.join(meaning.split()))} |")
    return "\n".join(['<div class="parameters" markdown>', "", *rows, "", "</div>"])


def reference(argument: str) -> str:
    """A heading and the documentation of each public name of a module.

    Of a chunker the methods are shown, and the fields in a table.
    """
    module, *names = argument.split()
    parts = []
    for name in names or import_module(module).__all__:
        parts.append(f"::: {module}.{name}")
        kind = getattr(import_module(module), name)
        if isinstance(kind, type) and issubclass(kind, IndexOptions):
            inherited = json.dumps(list(IndexOptions.model_fields))
            parts[-1] += f"\n    options:\n      inherited_members: {inherited}"
        if isinstance(kind, type) and issubclass(kind, Chunker):
            methods = [each for each, value in vars(kind).items() if _is_method(each, value)]
            parts[-1] += f"\n    options:\n      members: {json.dumps(methods)}"
            parts.append(table_of(kind))
    return "\n\n".join(parts)


def links_to_pages(module: str) -> str:
    """All public names of a module with the first sentence of their documentation."""
    rows, folder = ["| name | what it is |", "|---|---|"], module.rpartition(".")[2]
    for name in import_module(module).__all__:
        documentation = inspect.getdoc(getattr(import_module(module), name)) or ""
        summary = " ".join(documentation.split("\n\n")[0].split())
        rows.append(f"| [`{name}`]({folder}/{name}.md) | {_cell(summary)} |")
    return "\n".join(rows)


def _is_method(name: str, value: Any) -> bool:
    function = getattr(value, "__func__", value)
    return isfunction(function) and not name.startswith("_") and bool(function.__doc__)


def picture(argument: str) -> str:
    """The sample in colours, as a notebook shows it."""
    parameters = json.loads(argument)
    chunker = build_chunker(parameters.pop("strategy"), parameters)
    shown = chunker.chunk(_SAMPLE.read_text(encoding="utf-8").rstrip())._repr_html_()
    shown = shown.replace("\n", "<br>")  # Markdown must not read the text
    return f'<div class="picture">{shown}</div>'


_DIRECTIVES: dict[str, Callable[[str], str]] = {
    "parameters": parameter_table,
    "strategies": strategy_table,
    "query-options": query_option_table,
    "reference": reference,
    "pages": links_to_pages,
    "picture": picture,
}


class PlainDocstrings(Extension):
    """Shows what Markdown would misread, and the signatures of chunkers as `help()` has them."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            docstring = _SEVERAL_NAMES.sub(_one_by_one, obj.docstring.value)
            prose, *examples = re.split(r"(?m)^(?=>>> )", docstring, maxsplit=1)
            parts = [_as_markdown(prose), *(_DOCTEST.sub(_PYCON, each) for each in examples)]
            obj.docstring.value = "".join(parts)

    def on_class(self, *, cls: Class, **_: Any) -> None:
        kind = getattr(import_module(cls.module.path), cls.name, None)
        if isinstance(kind, type) and issubclass(kind, Chunker) and kind is not Chunker:
            parameters = map(_as_parameter, signature(kind).parameters.values())
            cls.set_member("__init__", Function("__init__", parameters=Parameters(*parameters)))


def _one_by_one(match: re.Match[str]) -> str:
    """`one, two: see above`, in a list of parameters, as two of them."""
    names = re.split(r",\s+", match["names"])
    return "\n".join(f"{match['indent']}{name}: {match['meaning']}" for name in names)


def _as_parameter(parameter: inspect.Parameter) -> Parameter:
    default = None
    if parameter.default is not parameter.empty:
        default = default_as_python(parameter.default)
        default = default if len(default) <= _LONGEST_DEFAULT else "..."
    kinds = {parameter.KEYWORD_ONLY: ParameterKind.keyword_only}
    kind = kinds.get(parameter.kind, ParameterKind.positional_or_keyword)
    return Parameter(parameter.name, kind=kind, default=default)
