"""The headings of a text, and those above a passage."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_splitters.structure.block import Block, TextFormat, nesting
from rag_splitters.structure.blocks import Format, detect_format, read_headings
from rag_splitters.structure.blocks.markdown import front_matter_end
from rag_splitters.structure.html.blocks import html_blocks
from rag_splitters.structure.html.tree import parse_html
from rag_splitters.text.boundaries import boundary_before, skip_space

_LONGEST = 120  # characters
_BEGINNING = 5_000  # characters
_LINK_SIGNS = re.compile(r"(?: ?(?:\{:? ?(?:[#.]|\w+=)[^{}]*\}|[¶\uf0c1]))+\Z")
_TITLE = re.compile(  # in front matter, and in Org
    r"""(?<![^\r\n])(#\+)?title[ \t]*[:=][ \t]*["']?([^\s"'>|][^\r\n]{0,500})""", re.IGNORECASE
)


class Outline:
    """The headings of a text, and those above a position.

    Parameters:
        declared: the title that the front matter declares, or "".

    >>> outline = Outline.of("# Tea\\n\\n## Green\\n\\nCool the water.")
    >>> outline.title, outline.above(17)
    ('Tea', ('Tea', 'Green'))
    """

    def __init__(self, text: str, headings: Sequence[Block], declared: str = "") -> None:
        self.headings = headings
        self.declared = declared
        self._starts = [heading.start for heading in headings]
        self._parents, stops = nesting([heading.level for heading in headings])
        ends = [*self._starts, len(text)]
        self.section_ends = [ends[stop] for stop in stops]
        self.paths: list[tuple[str, ...]] = []  # the path of each heading, including itself
        self._nested: list[bool] = []  # whether it is right below its parent
        for index, (heading, parent) in enumerate(zip(headings, self._parents, strict=True)):
            above = self.paths[parent] if parent >= 0 else ()
            self.paths.append((*above, heading.title))
            is_deeper = parent >= 0 and parent == index - 1
            self._nested.append(
                is_deeper and skip_space(text, headings[parent].end) >= heading.start
            )

    @classmethod
    def of(
        cls,
        text: str,
        format: Format = "auto",
        *,
        metadata: Mapping[str, Any] | None = None,
        blocks: Sequence[Block] | None = None,
    ) -> Outline:
        """Find the outline of a text, in linear time.

        Front matter, source code, logs, code blocks, `<pre>` and comments have no headings. Neither
        have the menus and sidebars of an HTML page, unless you pass its blocks.

        Parameters:
            text: any text.
            format: the format of the text; "auto" detects it from the metadata and the text.
            metadata: the metadata of the document, whose language, type or file name may determine
                the kind of the text, and which may list its headings.
            blocks: the blocks of the text, if they have been read already.

        >>> Outline.of("# TODO", metadata={"source": "build.sh"}).headings
        []
        """
        text_format = detect_format(text, metadata, format)
        if blocks is None:
            blocks = read_headings(text, text_format, metadata=metadata)
        declared = _declared_title(text, text_format)
        return cls(text, list(_headings_of(text, blocks)), declared)

    @property
    def title(self) -> str:
        """The title that is declared, else the text of the first heading, else ""."""
        return self.declared or (self.headings[0].title if self.headings else "")

    def above(self, position: int, end: int | None = None) -> tuple[str, ...]:
        """Return the texts of the headings above `position`, the outermost first.

        A passage may begin with several nested headings. If you pass its `end`, the result includes
        them down to the deepest one that is above the whole passage. If it begins with a heading
        and goes on after that section, the result has the headings that are above all of it. Text
        before the first heading of a document counts as part of its section if the passage ends
        there.

        >>> outline = Outline.of("# Tea\\n\\n## Green\\n\\nCool the water.")
        >>> outline.above(0), outline.above(0, 32)
        (('Tea',), ('Tea', 'Green'))
        >>> Outline.of("# Tea\\n\\n## Green\\n\\nCool.\\n\\n## Black\\n\\nBoil.").above(7, 40)
        ('Tea',)
        """
        index = bisect_right(self._starts, position) - 1
        stop = position if end is None else end
        if index < 0 and self._starts and self._starts[0] < stop <= self.section_ends[0]:
            index = 0
        if index < 0:
            return ()
        deeper = index + 1
        while deeper < len(self._nested) and self._nested[deeper] and self._starts[deeper] < stop:
            index = deeper if stop <= self.section_ends[deeper] else index
            deeper += 1
        while index >= 0 and self._starts[index] >= position and stop > self.section_ends[index]:
            index = self._parents[index]
        return self.paths[index] if index >= 0 else ()


def title_of(text: str, metadata: Mapping[str, Any]) -> str:
    """Return the title of a document.

    It is the metadata's `title`, else that of the front matter (in Org "#+TITLE"), else the first
    heading, or "".

    Only the beginning of a long Markdown text is read, if the first heading is there.

    >>> title_of("# Tea\\n\\nHot.", {}), title_of("# Tea\\n\\nHot.", {"title": "Milk"})
    ('Tea', 'Milk')
    """
    if title := metadata.get("title"):
        return str(title)
    text_format = detect_format(text, metadata)
    if text_format == "markdown":
        end = text.find("\n\n", max(_BEGINNING, front_matter_end(text)))
        if title := Outline.of(text[: max(end, 0)], text_format).title:
            return title
    return Outline.of(text, text_format, metadata=metadata).title


def _declared_title(text: str, text_format: TextFormat) -> str:
    """Return the title in the front matter of a text, or at the beginning of one in Org, or ""."""
    is_org = text_format == "org"
    lines = _TITLE.finditer(text, 0, _BEGINNING if is_org else front_matter_end(text))
    titles = (words for mark, words in map(re.Match.groups, lines) if bool(mark) == is_org)
    return _heading_text(next(titles, "").rstrip(" \t\"'"))


def _headings_of(text: str, blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield the headings among the blocks, and those inside an HTML block of Markdown."""
    for block in blocks:
        is_html = block.kind == "html"
        inside = html_blocks(parse_html(text, block.start, block.end)) if is_html else [block]
        for each in inside:
            if each.kind == "heading" and each.title:
                yield replace(each, title=_heading_text(each.title))


def _heading_text(title: str) -> str:
    """Return the text of a heading for chunks: at most 120 characters, cut after a word.

    >>> _heading_text("Boil the water {#boil} ¶")
    'Boil the water'
    """
    text = _LINK_SIGNS.sub("", title) or title
    if len(text) <= _LONGEST:
        return text
    space = text.rfind(" ", _LONGEST // 2, _LONGEST)
    cut = space if space >= 0 else boundary_before(text, _LONGEST - 1)
    return text[:cut].rstrip(" ,;:.–—-") + "…"
