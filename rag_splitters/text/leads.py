"""Lines that belong to what follows them: headings, lead-ins, labels, comments, table headers.

A sentence that goes on in a formula or in indented text belongs to it, and the ends of blocks at
the beginning of a chunk belong to what follows them, too.

A chunk does not end with such a line if there is another place to cut. Only a line and its
neighbours decide what the line is, so the rest of the text need not be read.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from rag_splitters.text.boundaries import count_characters, line_start, skip_space, trim_space
from rag_splitters.text.lines import (
    CAPTION,
    HEADING_NUMBER,
    KEYWORDS,
    VISIBLE,
    is_bullet,
    is_item,
    is_no_title,
    keyword_heading,
    line_kind,
    underlines,
)
from rag_splitters.text.sentences import last_sentence_cut, space_start

_Kind: TypeAlias = Literal["lead", "title", "outer"]

_REACH = 800  # characters: longer leads are cut like any other text
_LINES = 30  # maximum number of lines in a row of leads, such as a heading, a lead-in and a comment
_TITLES = 3  # maximum number of plain titles in a row; more of them are a list
_LONGEST_TITLE = 80  # characters
_SHORT_PARAGRAPH = 320  # characters
_TITLE_WORDS = 12
_LONGEST_KEYWORD = 12  # characters: a little more than the longest one

_HTML_HEADING = re.compile(r"<h[1-6]\b[^<>]*>(?:(?!</?h[1-6]\b).)*</h[1-6]>\Z", re.DOTALL | re.I)
_RULES = ("underline", "rule")
_CODE = re.compile(r"[{};=<>\\]|\w\(|\(\)|https?:")
_FORMULA = re.compile(
    r"(?:%.{0,150}\n\s*){0,5}(?:\\\[(?!\w+\])|\$\$|\.\. math::|`{3}\{?math\b"  # no \[aq] of troff
    r"|\\begin\{(?:align|displaymath|eqnarray|equation|gather|math|multline))"
)
_FENCES = ("```", "~~~")
_NO_SENTENCES = (*_FENCES, "\\begin{", "\\end{", "\\]", "$$", "%", "#")
_FIELD = re.compile(r"[ \t]*[\w-]+:(?:[ \t]+\S|\Z)")
_COLONS = (":", "：", ":**", ":__")
_PARAGRAPH_ENDS = ("\n\n", "\n\r\n", "\n```", "\\end{", "\\]")
_COLON_ENDS = frozenset(colon[-1] for colon in _COLONS)
_COLON_AND_TAGS = re.compile(r"[:：](?:\s*</([A-Za-z]\w*)>)+\Z")
_STOPS = tuple(".!?…,;。！？।؟，、；”»\"'")
_QUOTES = "\"'“„«‘¿¡"
_STOP_CHARACTERS = frozenset(_STOPS)
_SENTENCE_ENDS = _STOP_CHARACTERS - {","}
_BRACKETS = ")]>"
_ANSWERS = (
    *("A:", "**A:", "**A.", "Answer", "ANSWER", "**Answer", "**ANSWER", "<details"),
    *("Antwort:", "**Antwort", "Réponse", "**Réponse", "Respuesta:", "答：", "答:"),
)
_QUESTION = re.compile(
    r"^[ \t]*(?:[>#*-]+[ \t]*)?(?:(?:(?:Q|QUESTION|Question|Frage|Pregunta)\b[ \d]*|问|問)[:：.)]"
    r"|[^\n]*[?？][*_]*[ \t]*\r?$)",
    re.MULTILINE,
)
_COMMENT_MARKS = ("#", "//", "--", ";;", "%", "/*", "*")
_ENDS_ONLY = re.compile(r"(?:[\s)\]};,`~]|\\end\{\w+\*?\}|</[\w:-]+>)+")
_LONGEST_ENDS = 60  # characters
_LONGEST_GREETING = 60  # characters
_LONG_LINE = 100  # characters: longer lines that end with such a mark are not leads


def lead_start(text: str, low: int, cut: int) -> int:
    """Return the start of the lines before `cut` that belong to what follows it, or `cut`.

    So do the ends of blocks, such as "}", if nothing else precedes them from `low` on. Nothing
    before `low` is read.

    >>> lead_start("It ends.\\n\\n# Tea\\n\\nPour it.", 0, 17)
    10
    >>> lead_start("It ends. You need:\\n- a pot", 0, 19)
    9
    """
    visible = skip_space(text, low) if text[low : low + 1].isspace() else low
    start = _leads_start(text, visible, cut)
    if text.startswith(_ANSWERS, start) and (question := _question_start(text, low, start)) >= 0:
        start = _leads_start(text, visible, question) if question > visible else low
    is_short = start - low < _LONGEST_ENDS
    return low if is_short and _ENDS_ONLY.fullmatch(text, low, start) else start


def _leads_start(text: str, low: int, cut: int) -> int:
    """Return the start of the leads right before `cut`, or `cut`."""
    if text[cut - 1] == " " and not text[cut - 2].isspace():
        return cut
    if text[cut - 1] == "\n" and _ends_prose(text, low, cut):
        return cut
    behind = cut  # a cut may be before or after white space
    if text[cut : cut + 1].isspace():
        visible = VISIBLE.search(text, cut, cut + _REACH)
        behind = visible.start() if visible else len(text)
    if behind >= len(text) or not text[behind - 1].isspace():
        return cut
    start, titles, is_strong = behind, 0, False
    for _ in range(_LINES):
        lead, kind = _lead_line(text, low, start)
        if lead < 0:
            return cut if start == behind else start
        titles += kind == "title"
        is_strong = is_strong or (start == behind and kind != "outer")
        if titles > _TITLES or count_characters(text, lead, cut) > _REACH:
            return cut
        start = lead
        if start <= low:
            return low if is_strong else cut
    return cut


def _ends_prose(text: str, low: int, cut: int) -> bool:
    """Whether a sentence ends at the line feed before `cut`, in a line that begins with a word.

    Most cuts are such places. None of the rules below takes the line for a lead.
    """
    is_last = text[cut - 2] == "\n"
    end = cut - 2 if is_last else cut - 1
    if end <= low or text[end - 1] not in _SENTENCE_ENDS:
        return False
    if not text[cut : cut + 1].isalpha() and (not is_last or text[end - 1] in "?？"):
        return False  # it may be an underline, or an option of a question
    start = text.rfind("\n", low, end) + 1 or low
    first = text[start]
    if first in _QUOTES:
        return text[start + 1].isalpha()
    if not first.isalpha() or first == "第":
        return False
    word = text[start : start + _LONGEST_KEYWORD].split(None, 1)[0]
    return word[-1] not in ".:" and word.lower() not in KEYWORDS


def _question_start(text: str, low: int, cut: int) -> int:
    """Return the start of the paragraph of the last question before an answer, or -1.

    There may be options to choose from, but no other answer, between the two.
    """
    start, low = -1, max(low, cut - _REACH)
    for question in _QUESTION.finditer(text, low, cut):
        start = question.start()
    if start < 0 or any(text.find(f"\n{each}", start, cut - 1) >= 0 for each in _ANSWERS):
        return -1
    blank = text.rfind("\n\n", low, start)
    return blank + 2 if blank >= 0 else low


def anchor_start(text: str, cut: int) -> int:
    """Return the start of the anchors in the lines before a heading at `cut`, or `cut`.

    >>> anchor_start("It ends.\\n\\n.. _tea:\\n\\nTea\\n===", 20)
    10
    """
    low = max(0, cut - _REACH)
    while "\n" in text[(end := trim_space(text, low, cut)) : cut] and end > low:
        start = text.rfind("\n", low, end) + 1 or low
        if line_kind(text[start:end].strip()) != "anchor":
            break
        cut = start
    return cut


def _lead_line(text: str, low: int, cut: int) -> tuple[int, _Kind]:
    """Return the start of the lead before `cut`, or -1 if there is none, and its kind.

    A "title" is recognised by its length alone. The lines after an "outer" line are indented more.
    """
    end = space_start(text, low, cut)
    if end == low:
        return -1, "lead"
    last = text[end - 1]
    is_tag = last == ">"
    if is_tag and text[max(low, end - 5) : end - 2].lower() == "</h":
        nearest = max(low, end - _REACH)
        opening = max(text.rfind("<h", nearest, end), text.rfind("<H", nearest, end))
        heading = opening >= 0 and _HTML_HEADING.match(text[opening:end])
        return (opening if heading else -1), "lead"
    line_breaks = text.count("\n", end, cut)
    if not line_breaks:
        return -1, "lead"
    start = text.rfind("\n", low, end) + 1 or low
    leads_in = last in _COLON_ENDS and text.endswith(_COLONS, start, end)
    leads_in = leads_in or _goes_on(text, start, end, cut)
    tags = _COLON_AND_TAGS.search(text, max(start, end - _LONG_LINE), end) if is_tag else None
    if end - start > 4 * _LONGEST_TITLE and not leads_in and not tags:
        return -1, "lead"
    is_last = line_breaks > 1
    content = text[start:end].lstrip()
    has_mark = not content[0].isalnum() or (content[0] == "h" and content[2:4] == ". ")
    if last == "," and is_last and _is_greeting(text, low, start, content):
        return start, "lead"
    may_lead = last in "?？" or (last == "," and is_last)
    if may_lead and not text[cut].isalpha() and _is_option(_line_at(text, cut).lstrip(), content):
        return _lead_in_start(text, low, start, end), "lead"  # a question with its options
    line = text[start if start > low else line_start(text, start) : end]
    kind = line_kind(line) if has_mark else "text"
    if kind == "fence" and _is_underline(text, low, start, line.strip()):
        kind = "underline"
    if is_last and content[0] in ".:" and (directive := _directive_start(text, low, start)) >= 0:
        has_content = _indent(_line_at(text, cut)) > _indent(_line_at(text, directive))
        return (directive, "lead") if has_content else (-1, "title")
    if kind in ("heading", "label", "anchor"):
        is_star = kind == "heading" and content[0] == "*"  # of Org, or an item of a wiki
        return (-1 if is_star and not _begins_paragraph(text, low, start) else start), "lead"
    if content[0] in ".\\" and text.startswith(".TP", above := _line_above(text, low, start)):
        return above, "lead"  # the term of a paragraph in a manual page
    if tags:
        element = text.rfind(f"<{tags[1]}", max(low, end - _REACH), end)
        return (element if element >= 0 else start), "lead"
    if leads_in:
        return _lead_in_start(text, low, start, end), "lead"
    if kind == "rule" and (is_last or content[0] == "+"):
        has_row = not is_last and _line_at(text, cut).lstrip().startswith("|")
        return (_bordered_header(text, low, start) if has_row else -1), "lead"
    if kind in _RULES:
        return _above(text, low, start), "lead"
    is_comment = kind == "comment" or (last == "/" and line.endswith("*/"))
    if is_comment and (not is_last or line.lstrip().startswith(_COMMENT_MARKS)):
        comment = _comment_start(text, low, start, end)
        if is_last and _indent(line) > _indent(_line_at(text, cut)):
            return -1, "lead"  # the end of indented code, or of a block
        if not is_last or comment < 0 or _begins_paragraph(text, low, comment):
            return comment, "lead"
    following = ""
    if not is_last:
        following = _line_at(text, cut)
        if not following.lstrip()[:1].isalnum() and line_kind(following) in _RULES:
            return start, "lead"
        if _indent(following) > _indent(line) and not line.endswith(_STOPS):
            return start, "outer"
    line = line.strip()
    if keyword_heading(line, following) and _begins_paragraph(text, low, start):
        return start, "lead"
    if last not in _STOP_CHARACTERS and (match := CAPTION.match(line)) and match["table"]:
        return start, "lead"
    if not _may_be_title(line):
        return -1, "title"
    following = following or _line_at(text, cut)
    is_title = _is_title(text, low, start, line, following, is_last)
    return (start if is_title else -1), "title"


def _is_option(line: str, question: str) -> bool:
    """Whether a line is an item of a list under a question, and not the next item after it."""
    is_next = line[:1] == question[0] or (line[:1].isdigit() and question[0].isdigit())
    return is_item(line) and not (is_next and is_item(question))


def _lead_in_start(text: str, low: int, start: int, end: int) -> int:
    """Return the start of the sentence that leads to what follows it, inside its paragraph.

    A formula and a fence end a paragraph, too. A short one stays whole if there is enough text
    before it. Below a field with a value, as in a head or in YAML, it is the line, and so it is
    below a line with a larger indentation, as in code, if nothing precedes the paragraph.
    """
    above = _line_above(text, low, start)
    is_field = text[end - 1] == ":" and _FIELD.match(text, start, end)
    if is_field and _FIELD.match(text, above, start):
        return start
    blank = max(text.rfind(end, low, start) for end in _PARAGRAPH_ENDS)
    paragraph = text.find("\n", blank + 1, start) + 1 if blank >= 0 else low
    sentence = last_sentence_cut(text, max(paragraph, end - _REACH), end - 1)
    length = count_characters(text, paragraph, end)
    is_short = length <= _SHORT_PARAGRAPH <= count_characters(text, low, paragraph)
    if sentence >= 0 and not is_short:
        return sentence
    is_code = paragraph <= low < above and _indent(text[above:start]) > _indent(text[start:end])
    return start if is_code or length > _REACH else paragraph


def _goes_on(text: str, start: int, end: int, cut: int) -> bool:
    """Whether the sentence in the line from `start` to `end` goes on in what follows it.

    That is a formula, a fence or, behind a blank line, text with a larger indentation, such as code
    or the changes under the name of a version.
    """
    if text[end - 1] in _SENTENCE_ENDS or (following := VISIBLE.search(text, cut)) is None:
        return False
    place, line = following.start(), text[start:end]
    if line.lstrip().startswith(_NO_SENTENCES) or line.rstrip(_BRACKETS)[-1:] in _SENTENCE_ENDS:
        return False
    is_apart = text.count("\n", end, place) > 1
    is_fence = text.startswith(_FENCES, place) and text[end - 1] not in ">|"
    if is_fence and line_kind(line.strip()) == "text":
        return is_apart or line_kind(_line_at(text, place)) == "label"
    if text[place - 1] in " \t" and is_apart and following[0] != "<":
        return _indent(_line_at(text, place)) > _indent(text[line_start(text, start) : end])
    return following[0] in "\\$%.`" and _FORMULA.match(text, place) is not None


def _comment_start(text: str, low: int, start: int, end: int) -> int:
    """Return the start of the lines of a comment whose last line is given, or -1."""
    if text.endswith("*/", start, end):
        opening = text.rfind("/*", max(low, end - _REACH), end)
        first = line_start(text, opening) if opening >= 0 else -1
        return first if text[first - 1 : first] in ("", "\n") else -1  # behind code: no lead
    first = max(low, end - _REACH)
    while start > first:
        above = _line_above(text, first, start)
        if line_kind(text[above : start - 1].strip()) != "comment":
            break
        start = above
    return start


def _directive_start(text: str, low: int, start: int) -> int:
    """Return the start of the directive whose first line or last option is at `start`, or -1."""
    low = max(low, start - _REACH)
    while (line := _line_at(text, start).lstrip()).startswith(":") and start > low:
        start = _line_above(text, low, start)
    return start if line.startswith("..") and line_kind(line) == "label" else -1


def _is_underline(text: str, low: int, start: int, line: str) -> bool:
    """Whether a row of marks underlines the line above it, which begins a paragraph."""
    above = _line_above(text, low, start)
    title = text[above:start].strip()
    return bool(title) and underlines(line, title) and _begins_paragraph(text, low, above)


def _above(text: str, low: int, start: int) -> int:
    """Return the start of a title with overline, or of a table header, above a line."""
    if start <= low:
        return start
    above = _line_above(text, low, start)
    line = text[above : start - 1].rstrip()
    is_title = len(line) <= 2 * _LONGEST_TITLE and not is_bullet(line)
    if not line or not is_title or (": " in line and _ends_front_matter(text, start)):
        return -1 if not line.startswith("|") else above
    over = _line_above(text, low, above)
    return over if above > low and line_kind(text[over : above - 1].rstrip()) in _RULES else above


def _bordered_header(text: str, low: int, start: int) -> int:
    """Return the start of the header that ends with a border, or of a table's first border; or -1.

    A border after another row belongs to that row.
    """
    top, first, borders = start, "+", 0
    while borders < 2 and start - top < _REACH:
        if top <= low:
            return top if first == "+" else -1
        above = _line_above(text, low, top)
        if not (mark := text[above:top].lstrip()[:1]) or mark not in "|+":
            return top
        top, first, borders = above, mark, borders + (mark == "+")
    return -1


def _line_above(text: str, low: int, start: int) -> int:
    """Return the start of the line above the one at `start`, or `low`."""
    return max(text.rfind("\n", low, max(start - 1, low)) + 1, low)


def _ends_front_matter(text: str, start: int) -> bool:
    """Whether a line of dashes ends front matter, which such a line begins, too."""
    blank = text.rfind("\n\n", max(0, start - _REACH), start)
    begins = text.startswith("---") or text.startswith("---", blank + 2 if blank >= 0 else 0)
    return begins and _line_at(text, start) == "---"


def _may_be_title(line: str) -> bool:
    """Whether a line is short, and begins with a capital, a number or a quotation mark."""
    if len(line) > _LONGEST_TITLE or len(line.split()) > _TITLE_WORDS or is_bullet(line):
        return False
    words = line[_number_end(line) :]
    if words[0].islower() or not (words[0].isalnum() or words[0] in _QUOTES):
        return False
    return any(map(str.isalpha, words)) and not _CODE.search(line)


def _number_end(line: str) -> int:
    """Return the end of the number that a line begins with, or 0."""
    number = HEADING_NUMBER.match(line)
    return number.end() if number else 0


def _is_title(text: str, low: int, start: int, line: str, following: str, is_last: bool) -> bool:
    """Whether a line is alone or in capitals, without a full stop, before a longer one."""
    number_end = _number_end(line)
    is_numbered, words = number_end > 0, line[number_end:]
    is_first = _begins_paragraph(text, low, start)
    is_capitals = words.isupper()
    may_head = is_numbered and (is_first or not is_last)  # a PDF's text may lack blank lines
    is_alone = is_first and is_last
    if may_head and _is_numbered_heading(line, following.strip(), is_alone):
        return True
    if not (is_first or is_capitals) or not (is_last or (is_capitals and following.isupper())):
        return False
    if (line.endswith(_STOPS) and not (is_numbered and line.endswith("."))) or is_no_title(line):
        return False
    is_longer = len(following.strip()) > len(line)
    return is_longer or is_capitals or is_item(following)


def _is_greeting(text: str, low: int, start: int, line: str) -> bool:
    """Whether a line that ends with a comma is a greeting, such as "Hello everybody,"."""
    is_short = len(line) <= _LONGEST_GREETING and line[0].isupper()
    return is_short and _begins_paragraph(text, low, start)


def _begins_paragraph(text: str, low: int, start: int) -> bool:
    """Whether the line at `start` is the first one, or the first after a blank line."""
    if start <= low or text.startswith("\n\n", start - 2):
        return True
    before = text[max(low, start - 100) : start]
    return not before.strip() or before[:-1].rstrip(" \t\r\f").endswith("\n")


def _is_numbered_heading(line: str, following: str, is_alone: bool) -> bool:
    """Whether a numbered line is a heading before a paragraph or a deeper heading, or a question.

    A question must be alone between blank lines, and its answer may be short.
    """
    is_question = is_alone and line.endswith("?")
    if line.endswith((*_STOPS, "-")) and not is_question:
        return False
    number = HEADING_NUMBER.match(following)
    if number:
        return following.startswith(line.split(None, 1)[0].rstrip(".") + ".")
    return is_question or (len(following) > 45 and 2 * len(following) > 3 * len(line))


def _line_at(text: str, position: int) -> str:
    """Return the line at `position` with its indentation, or the next one that is not blank."""
    if text[position : position + 1].isspace():
        visible = VISIBLE.search(text, position)
        position = visible.start() if visible else len(text)
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position, position + 300)
    return text[start : end if end >= 0 else position + 300].rstrip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
