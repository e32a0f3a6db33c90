"""Reads subtitles as running text, with times and positions in the file."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from rag_splitters.text.excerpt import Excerpt, ExcerptWriter, Replacement
from rag_splitters.text.lines import BLANK_LINE, with_line_feeds
from rag_splitters.text.origin import Reading, Row, UnreadableError

_STAMP = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?"
_TIMING = re.compile(rf"^[ \t]*{_STAMP}[ \t]*-->[ \t]*{_STAMP}(?:[ \t][^\r\n]*)?\r?$", re.MULTILINE)
_NEXT_CUE = re.compile(  # its number, or its name after a blank line
    r"\n[ \t]*(?:\d+|\r?\n[ \t]*\S[^\n]*)[ \t\r]*\n?\Z"
)
_MARK = re.compile(
    r"<v(?:\.[^ \t>]*)?[ \t]+([^>\n]{1,200})>"  # who speaks
    r"|</?(?:[bius]|c|v|lang|ruby|rt|font)(?=[\s.>/])[^>\n]{0,300}>"
    r"|<(?:\d+:)?\d\d:\d\d\.\d{3}>"  # karaoke
    r"|\{\\[^}\n]{1,100}\}"  # positions as in ASS: {\an8}
    r"|&(?:amp|lt|gt|nbsp|lrm|rlm|quot|apos|\#\d{1,7}|\#x[\da-f]{1,6});",
    re.IGNORECASE,
)
_FLASH = 0.1  # seconds: duration of the short cues that rolling captions put between others
_TURN = re.compile(r"[^\r\n]+?(?=<v[.\s]|[\r\n]|\Z)")  # what one person says in a line
_DASH = re.compile(r"[-\u2010-\u2015>]+[ \t]*\S")


def read_subtitles(text: str) -> Reading:
    """Read subtitles in SRT or WebVTT as one text, in which sentences continue across cues.

    A new line begins when another person speaks: at a dash, or at the next name in WebVTT, which is
    put before the words ("Ann: Hello."). Numbers, times, settings, notes, styles, regions and
    tags are dropped, and so are lines that rolling captions repeat. Cues stay in the order of the
    file, whatever their times.

    Returns: the text, the times of its cues in seconds, and their positions in the file.

    Raises UnreadableError if there is no cue.

    >>> cues = "1\\n00:00:01,000 --> 00:00:02,500\\n<i>Rain</i> fell\\n\\n"
    >>> reading = read_subtitles(cues + "2\\n00:00:03,000 --> 00:00:04,000\\nall day.")
    >>> reading.text, reading.rows["time"]
    ('Rain fell all day.', [(0, 1.0, 2.5), (10, 3.0, 4.0)])
    """
    text = with_line_feeds(text)
    cues = list(_cues(text))
    if not cues:
        raise UnreadableError("it has no cue such as 00:00:01,000 --> 00:00:02,500")
    writer, rows, speaker, previous = ExcerptWriter(text), list[Row](), "", list[str]()
    is_dialogue = False
    for starts, ends, lines in cues:
        begun, was_dialogue = False, is_dialogue
        own: list[str] = []
        for low, high in lines:
            line, name = _line(text, low, high)
            words = line.text.strip()
            own.append(words)
            is_rolling = len(lines) > 1 or ends - starts < _FLASH
            if not words or (is_rolling and previous and words == previous[-1] and not begun):
                continue
            is_dialogue = _DASH.match(words) is not None or (begun and is_dialogue)
            is_turn = bool(name and name != speaker) or _DASH.match(words) is not None
            is_turn = is_turn or (was_dialogue and not begun)
            if writer.length:
                writer.add("\n" if is_turn else " ")
            if not begun:
                rows.append((writer.length, starts, ends))
            first = line.text.index(words)
            if name and name != speaker:
                writer.add(f"{name}: ", low, max(line.start(first), low + 1))
            speaker, begun = name or speaker, True
            writer.extend(line, first, first + len(words))
        previous = [words for words in own if words] or previous
    return Reading(writer.excerpt(), {"time": rows})


def begins_subtitles(text: str) -> bool:
    """Whether a text begins with the header of WebVTT, or with a cue and perhaps its number."""
    lines = text.lstrip().split("\n", 2)[:2]
    return text.startswith("WEBVTT") or any(map(_TIMING.match, lines))


def _cues(text: str) -> Iterator[tuple[float, float, list[tuple[int, int]]]]:
    """Yield the times of each cue in seconds and the positions of its lines, as in the file."""
    timings = list(_TIMING.finditer(text))
    is_vtt = text.lstrip("\ufeff").startswith("WEBVTT")
    ends = [*(timing.start() for timing in timings[1:]), len(text)]
    for timing, end in zip(timings, ends, strict=False):
        start = min(timing.end() + 1, end)
        stop = end
        if text.startswith(("\n", "\r\n"), start):
            stop = start  # a cue without words
        elif is_vtt and (blank := BLANK_LINE.search(text, start, end)):
            stop = blank.start()
        elif end < len(text) and (after := _NEXT_CUE.search(text, max(start - 1, end - 300), end)):
            stop = after.start()
        first, last = (_seconds(timing.groups()[part : part + 4]) for part in (0, 4))
        lines = [line.span() for line in _TURN.finditer(text, start, stop)]
        yield first, max(first, last), lines


def _seconds(stamp: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = (part or "0" for part in stamp)
    whole = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    return whole + int(fraction.ljust(3, "0")) / 1000


def _line(text: str, low: int, high: int) -> tuple[Excerpt, str]:
    """Return a line without marks, and the speaker."""
    name, replacements = "", list[Replacement]()
    for mark in _MARK.finditer(text, low, high):
        name = " ".join(html.unescape(mark[1]).split()) if mark[1] else name
        character = html.unescape(mark[0]) if mark[0][0] == "&" else ""
        replacements.append((*mark.span(), character.replace("\xa0", " ")))
    return Excerpt.of(text, low, high, replacements), name
