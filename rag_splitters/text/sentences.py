"""Finds sentences with rules that decide each boundary by the characters around it.

A decision looks at the white space before a position, at the 120 characters before that, and at
about 60 characters after it. So a window of a huge text has the same boundaries as the whole.
"""

from __future__ import annotations

import re
from itertools import product

import regex

from rag_splitters.text.lines import BLANK_LINE, DECIMAL, LETTERED, MARK, ROW, VISIBLE

_CONTEXT = 120  # characters before a boundary's white space that a decision may look at
_MARGIN = 200  # characters: more than the marks, quotes, citations and emoji of one boundary
_REACH = 20  # characters: at least as long as any citation or emoji
_FIRST_BLOCK = 192  # characters, about two sentences: the first search from a window's end

_STRONG = "。！？｡।॥؟۔։።፧፨။។៕\u037e"  # always ends a sentence
_WEAK = ".!?…‥‼⁇⁈⁉"  # ends a sentence if its surroundings agree
_CLOSERS = "\"')]}*_`“”‘’«»‹›」』）】〉》］"
_OPENERS = "\"'([{*_`“”‘’„‚«»‹›「『（【¿¡"
_CHINESE_OPENING = (
    r"(?<=[。！？｡”’])(?:[“‘]|`(?=[!-~]))"  # marks that close elsewhere, but not after these
)
_ENDS = "[" + _STRONG + _WEAK + re.sub("[“‘`]", "", re.escape(_CLOSERS)) + "]"
_EMOJI = r"[\u2600-\u27bf\ufe0f\u200d\U0001f1e6-\U0001faff]{1,8}"
_LATE = rf"[ \u00a0\u202f]?(?:{_EMOJI}|»)"  # closes a sentence after a space
_CITED = r"(?:\[[\w ,–-]{1,12}\])"
_DASHED = r"(?:\u2060?(?:—|--)(?=[ \n]?[\"'“‘«]?[^\W\da-z_]))"  # He left.—I stayed.

_REFERENCE = re.compile(r"\((?:\[?[#@\w-]{0,20}\d+\]?(?:\([^()\s]{1,200}\))?(?:,\s)?){1,9}\)")
_OPENS_CHINESE = re.compile(_CHINESE_OPENING)
_DOTTED = re.compile(  # EE. UU., FF. AA., 2020. 3. 5. in Korean
    r"([A-Z])\1\.\s([A-Z])\2\.|\d\d\.\s\d{1,2}\.\s\d{1,2}\."
)

_DASHES = "—-"
_MARKS = frozenset(_STRONG + _WEAK)
_RUN = frozenset(_STRONG + _WEAK + _CLOSERS)
_NEVER_FIRST = frozenset(_STRONG + _WEAK + ")]}）】〉》］」』,;:，、；：|=&%/\\+~^")
_NEVER_LAST = _RUN.union(_DASHES, "=")  # before a line that certainly goes on
_PARTICLES = frozenset("とっのはがをにでもや")  # 「行く。」と言った goes on
_EXTENDER = regex.compile(r"[\p{M}\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}]")

_MARK = re.compile(rf"[{_STRONG}{_WEAK}\r\n\u2029]")
# Every sentence begins where a match ends. The pattern never backtracks, so that a run of a million
# marks is read once; a match that begins inside a run ends where the run's own match ends.
_CANDIDATE = re.compile(
    rf"{_MARK.pattern}"
    rf"(?:(?<![\r\n\u2029]){_ENDS}*(?:(?!{_CHINESE_OPENING})[“‘`]{_ENDS}*)*"
    rf"{_CITED}{{0,4}}(?:{_LATE}(?=\s)|{_DASHED})?)?\s*"
)
_TAIL = re.compile(rf"(?:{_CITED}{{1,4}})?(?:{_LATE})?\Z")
_LATE_ENDS = re.compile(rf"(?:{_EMOJI}|»)(?:\s|\Z)")
_PARAGRAPH_END = re.compile(rf"{BLANK_LINE.pattern}|\u2029")
_NEW_LINE_ITEM = re.compile(rf"{MARK}|{DECIMAL}|[#=]{{1,6}}[ \t]+\S|{ROW}")
_LETTERED_ITEM = re.compile(LETTERED)
_SMALL_LINE = re.compile(r"[ \t]*\n[ \t]*[a-z]+(?![a-z.)])")  # no item, such as "a)"
_ENDS_ITEM = (*".;:,!?", " and", " or")
_RUN_IN_HEADING = re.compile(
    r"(?:^|[\r\n])[ \t]*\d{1,3}(?:\.\d{1,3})*\.?[ \t]+"
    r"((?:[^\W\da-z_][\w'’-]*,?[ \t]+|(?:a|an|and|at|by|for|from|in|of|on|or|the|to|with)[ \t]+)"
    r"{0,9}[^\W\da-z_][\w'’-]*)\.\Z"
)
_MARKED_HEADING = re.compile(r"#{1,6}[ \t]|=+ .* =+\Z")
_NUMBERING = re.compile(r"(?:\d{1,3}(?:\.\d{1,3})*|[ivxIVX]{1,4}|[^\W\d_])\Z")
_QUICK_CLOSERS = '")”’]'
_QUICK_ENDS = f".?!{_QUICK_CLOSERS}"
_ACRONYM = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}\Z")
_FIRST_WORD = re.compile(rf"[{_OPENERS}]{{0,4}}(?:[-–—]{{1,2}}\s?)?([^\W_]{{0,30}})(\.?)")
_NUMBERS = {  # what continues a sentence after an abbreviation, and after a word that may be one
    "number": re.compile(r"[(\[#]?(?:[\d§¶]|[IVXLC]{2,}\b|[B-HJ-Z]\b)"),
    "no item": re.compile(r"[(\[#]?(?:[§¶]|\d(?!\d{0,2}[.)]\s))"),
}
_SPEAKER = re.compile(r"\w{1,30} (?:said|asked|replied|cried|answered|shouted|whispered|added)\b")
_GLUED_WORD = re.compile(r"([^\W\d_][^\W\d_A-Z]{1,30})(?=[\s,'’])")

# What must follow an abbreviation to continue its sentence; "no starter": a word that is not one
# of _STARTERS.
_GOES_ON_WITH = {
    word: line.partition(":")[0]
    for line in (
        "anything: dr mr mrs ms mx messrs cllr mme mlle mgr dra sra prof gov pres sen rep hon rev",
        "anything: gen col capt lt sgt maj cmdr adm e.g eg i.e ie viz vs cf ca approx incl resp",
        "anything: z.b d.h u.a bzw ggf vgl sog bspw evtl hr rev डॉ प्रो पं श्री проф акад им ул",
        "anything: avv bijv blz cfr dhr dott dña excmo exmo ing lic mevr np sig tzn гр см тел",
        "anything: lfd abl bgbl bundesgesetzbl gbl gvbl rgbl isd ivm isv ihv mio mrd inkl zzgl",
        "number: fig figs sec secs eq eqs no nos nr vol vols p pp pt ch chap app ref refs tab abs",
        "number: art arts núm pág págs cap abb bd kap lit рис табл гл стр ст halbs unterabs abschn",
        "number: jan feb mar apr jun jul aug sep sept oct nov dec ust poz str",
        "no starter: inc corp ltd co bros llc plc jr sr al etc usw st ste mt ft ave blvd rd dept",
        "no starter: univ assoc est govt yahoo! fed civ crim supp educ gem",
    )
    for word in line.partition(":")[2].split()
}
_LONGEST = max(map(len, _GOES_ON_WITH)) + 2  # characters: a space, an abbreviation, a full stop
_PRONOUNS = frozenset("i he she it we they you there the this that these those then".split())
_STARTERS = _PRONOUNS | frozenset(
    "a an his her its our their my your here when while if in on at as after before but and so or "
    "for from however although because since what who why how where which some many most all both "
    "no not yes now today later also thus by with to der die das ein eine er sie es wir ich".split()
)
_NUMERALS = ["".join(digits) for size in range(1, 5) for digits in product("ivx", repeat=size)]
_NEVER_PLAIN = frozenset(_GOES_ON_WITH).union(_NUMERALS)
_SMALL_WORDS = frozenset("a an and at by de for from in la of on or the to vs with".split())


def sentence_cuts(text: str) -> list[int]:
    """Return the code-point offsets at which sentences begin, sorted, except the first.

    Use it to cut a whole text. A cut is at the first visible character of a sentence, so white
    space stays with the sentence before it. The rules cover English, the usual traps of German, and
    the marks of Chinese, Japanese, Hindi, Arabic, Urdu, Armenian, Ethiopic, Burmese and Khmer.

    >>> sentence_cuts("Dr. Smith paid $3.14. He left.")
    [22]
    """
    return [cut for cut in map(re.Match.end, _CANDIDATE.finditer(text)) if _is_break(text, cut)]


def last_sentence_cut(text: str, low: int, high: int) -> int:
    """Return the last of `sentence_cuts(text)` that is above `low` and at most `high`, or -1.

    Use it to fill a chunk with as many sentences as fit. It searches backwards from `high`, so that
    it usually reads a sentence or two, and never more than the window and the white space before.

    >>> last_sentence_cut("One is here. Two is here. Three.", 0, 20)
    13
    """
    low = low if low > 0 else 0
    high = high if high < len(text) else len(text) - 1
    if low >= high:
        return -1
    cut = text.rfind(". ", low, high) + 2  # the usual end, behind which no mark comes
    is_last = cut > low + 1 and text[cut].isupper() and not _MARK.search(text, cut, high)
    if is_last and _is_plain(text, cut):
        return cut
    begin = low - _MARGIN if low > _MARGIN else 0
    end, size = high, _FIRST_BLOCK
    while end > begin:
        start = max(begin, end - size)
        for match in reversed(list(_CANDIDATE.finditer(text, start, end))):
            cut = _end_of(text, match, end, high)
            if low < cut <= high and _is_break(text, cut):
                return cut
        end, size = start, size * 2
    if not text[begin : low + 1].isspace():
        return -1
    after_gap = VISIBLE.search(text, low, high + 1)  # the gap began before the first block
    return after_gap.start() if after_gap and _is_break(text, after_gap.start()) else -1


def first_sentence_start(text: str, low: int, high: int) -> int:
    """Return the beginning of the first sentence from `low` to before `high`, or -1.

    Use it to begin a part of a text with a whole sentence. The first visible character of the text
    begins a sentence too.

    >>> first_sentence_start("One is here. Two is here. Three.", 5, 32)
    13
    """
    gap = space_start(text, 0, low) if text[low - 1 : low].isspace() else low
    if gap == 0:
        first = VISIBLE.search(text, low, high)
        return first.start() if first else -1
    last, begin = text[gap - 1], gap
    if last in _RUN or last == "-" or last >= "\u2000" or "[" in text[max(0, gap - _REACH) : gap]:
        begin = max(0, gap - _MARGIN)  # a boundary's marks may begin before
    stop = high  # a sentence that the last marks end begins at `high` or behind it
    while stop > begin and text[stop - 1] in _QUICK_ENDS:
        stop -= 1
    while match := _CANDIDATE.search(text, begin, stop):
        begin = _end_of(text, match, stop, high)
        if begin >= high:
            return -1
        if low <= begin and _is_break(text, begin):
            return begin
    return -1


def _end_of(text: str, match: re.Match[str], end: int, high: int) -> int:
    """Return the end of a candidate, which the end of the searched text may have cut short."""
    if match.end() > end - _REACH:
        match = _CANDIDATE.match(text, match.start(), high + _MARGIN) or match
    return match.end()


def space_start(text: str, low: int, end: int) -> int:
    """Return the start of the white space before `end`, at least `low`.

    >>> space_start("Tea.  ", 0, 6)
    4
    """
    while end > low and text[end - 1].isspace():
        begin = end - _REACH if end - _REACH > low else low
        end = begin + len(text[begin:end].rstrip())
    return end


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each sentence in code points, without white space around it.

    Use it to embed or number sentences. The spans ascend, do not overlap, and cover every visible
    character; blank text gives none.

    >>> sentence_spans(" Wait... what? Yes. ")
    [(1, 14), (15, 19)]
    """
    first = VISIBLE.search(text)
    starts = [first.start(), *sentence_cuts(text)] if first else []
    ends = [*starts[1:], len(text)]
    return [(a, a + len(text[a:b].rstrip())) for a, b in zip(starts, ends, strict=False)]


def _is_break(text: str, cut: int) -> bool:
    """Whether a sentence other than the first begins at `cut`, where a candidate ends."""
    if cut >= len(text):
        return False
    first = text[cut]
    if first.isupper() and _is_plain(text, cut):
        return True
    if "a" <= first <= "z" and _goes_on(text, cut):
        return False
    is_blank_line = text[cut - 2 : cut] == "\n\n" and cut > 2 and not text[cut - 3].isspace()
    if is_blank_line and first < "\u007f" and first != "(":
        return True
    if first == "(" and _REFERENCE.match(text, cut):
        return False
    if text[cut - 1] in ".!?" and not first.isupper():
        return False
    size = _CONTEXT
    while (before := text[max(0, cut - size) : cut]).isspace() and size < cut:
        size *= 2  # a long gap: look further back
    ended = before.rstrip()
    gap = before[len(ended) :]
    ended = ended[-_CONTEXT:]
    if not ended or ((first > "\u02ff" or first == "»") and _belongs_before(text, cut, gap)):
        return False
    is_start = len(ended) + len(gap) == cut
    has_line_break = "\n" in gap or "\r" in gap or "\u2029" in gap
    if has_line_break and _breaks_at_line(text, cut, ended, gap, is_start):
        return True
    if ended[-1] in _DASHES:
        ended = ended.rstrip("—-\u2060")
        core = _without_closers(ended) if ended else ""
        return core[-1:] in _MARKS and _breaks_spaced(text, cut, core, ended, is_start)
    if first in (_NEVER_FIRST if gap else _RUN) and not _OPENS_CHINESE.match(text, cut):
        return False
    core = _without_closers(ended)
    if core[-1:] not in _MARKS or (len(core) < len(ended) and first in _PARTICLES):
        return False
    if core[-1] in _STRONG or not gap:
        return core[-1] in _STRONG or _breaks_unspaced(text, cut, core, ended)
    return _breaks_spaced(text, cut, core, ended, is_start)


def _is_plain(text: str, cut: int) -> bool:
    """Whether it is certainly a break: an ordinary word, a mark and one space before a capital."""
    if cut < 25 or text[cut - 1] not in " \n":
        return False
    ended = text[cut - 24 : cut - 1]
    if ended[-1] not in ".!?":
        return False
    words = ended[:-1].rsplit(None, 1)
    word = words[1].rstrip(_QUICK_CLOSERS) if len(words) > 1 else ""  # else it may begin before
    return word.islower() and word.isalpha() and len(word) > 1 and word not in _NEVER_PLAIN


def _goes_on(text: str, cut: int) -> bool:
    """Whether it is certainly no break: a line that ends without a mark, and a small letter."""
    end = space_start(text, 0, cut)
    if end == 0 or (last := text[end - 1]) in _NEVER_LAST or last >= "\u2000":
        return False
    may_be_heading = "#" in text[max(0, end - _CONTEXT) : end]
    return not may_be_heading and _SMALL_LINE.match(text, end) is not None


def _belongs_before(text: str, cut: int, gap: str) -> bool:
    """Whether the character at `cut`, a mark or emoji, belongs to the text before it."""
    is_late = len(gap) < 2 and gap in " \u00a0\u202f" and _LATE_ENDS.match(text, cut) is not None
    return is_late or _EXTENDER.match(text, cut) is not None


def _breaks_unspaced(text: str, cut: int, core: str, ended: str) -> bool:
    """Whether a sentence begins at `cut` although white space after a mark is missing."""
    word = _GLUED_WORD.match(text, cut)
    if word is None or not text[cut].isupper():
        return False
    before = core.rsplit(None, 1)[-1][:-1].rstrip(_CLOSERS).lstrip(_OPENERS)
    if not before[1:].isalpha() or before.lower() in _GOES_ON_WITH:
        return False
    is_sure = core[-1] != "." or ended[-1] == "]"  # really?Yes is certain, file.Name is not
    return before[1:].islower() if is_sure else before.islower() and word[1].lower() in _STARTERS


def _breaks_at_line(text: str, cut: int, ended: str, gap: str, is_start: bool) -> bool:
    """Whether the line break in `gap` is a boundary: a blank line, a list item, a heading."""
    is_item = not text[cut : cut + 5].isalpha() and _NEW_LINE_ITEM.match(text, cut)
    if is_item or (gap != "\n" and _PARAGRAPH_END.search(gap)):
        return True
    if ended.endswith(_ENDS_ITEM) and _LETTERED_ITEM.match(text, cut):
        return True
    begin = max(ended.rfind("\n"), ended.rfind("\r")) + 1
    if begin == 0 and not is_start:  # the line is longer than any heading
        return False
    line = ended[begin:].lstrip()
    if _MARKED_HEADING.match(line):
        return True
    if not text[cut].isupper() or not line[-1].isalnum() or line[0].islower() or len(line) > 80:
        return False
    words = [word for word in line.split() if word not in _SMALL_WORDS]
    if begin > 0 and not _PARAGRAPH_END.search(ended, len(ended[:begin].rstrip()), begin):
        return False
    return line.endswith(words[-1]) and not any(word[0].islower() for word in words)


def _without_closers(ended: str) -> str:
    """Return the text up to its mark, without closing quotes and brackets, citations and emoji."""
    last = ended[-1]
    if last in _MARKS or (last not in _RUN and last < "\u2000"):
        return ended
    core = ended.rstrip(_CLOSERS)
    may_have_tail = last in "]»" or last >= "\u2000"  # a citation or emoji
    tail = _TAIL.search(ended) if may_have_tail and core[-1:] not in _MARKS else None
    return ended[: tail.start()].rstrip(_CLOSERS) if tail else core


def _breaks_spaced(text: str, cut: int, core: str, ended: str, is_start: bool) -> bool:
    """Whether `core`, which ends with a mark, ends a sentence before the white space at `cut`."""
    match, is_closed = _FIRST_WORD.match(text, cut), core != ended
    word, stop = match.groups() if match else ("", "")
    if word[:1].islower() and word.islower():  # not iPhone
        last = core.rsplit(None, 1)[-1][:-1]
        is_word = len(last) > 1 and last.isalpha() and last.islower()
        return word in _PRONOUNS and not is_closed and is_word and last not in _NEVER_PLAIN
    if is_closed and core[-1] != "." and _SPEAKER.match(text, cut):
        return False
    if _DOTTED.match(text, cut - 4):
        return False
    if not is_closed and not text[cut].isdigit() and _RUN_IN_HEADING.search(core):
        return False
    continuation = _continuation(core, is_start)
    if continuation in _NUMBERS:
        return _NUMBERS[continuation].match(text, cut) is None
    is_starter = word.lower() in _STARTERS and not stop
    return not continuation or (continuation == "no starter" and is_starter)


def _continuation(core: str, is_start: bool) -> str:
    """Return what must follow the last word of `core` to continue its sentence, if anything."""
    token = core.rsplit(None, 1)[-1]
    last = token.removesuffix(".").removesuffix("\\").lstrip(_OPENERS)  # 3\. in Markdown
    if not last:  # "He left . She" in tokenised text, but not ". . ."
        last = (core[:-1].split() or ["."])[-1]
        return "anything" if last[-1] == "." else _GOES_ON_WITH.get(last.lower(), "")
    if core[-1] == "." and (len(last) < 5 or last[-1].isdigit()) and _NUMBERING.match(last):
        before = core[: -len(token)].rstrip(" \t")
        word = before[-_LONGEST:].rpartition(" ")[2].removesuffix(".").lower()
        if last.replace(".", "").isdigit() and _GOES_ON_WITH.get(word) == "number":
            return ""  # a reference such as "Fig. 2." and no ordinal
        if before[-1] in "\r\n.!?:;" if before else is_start:  # a list item, or more initials
            return "anything"
        if len(last) == 1 or (len(last) == 2 and last.isdigit()):
            return _GOES_ON_WITH.get(last.lower(), "no starter")
    if "." in last and _ACRONYM.match(last):
        return _GOES_ON_WITH.get(last.lower(), "no starter")
    is_short = len(last) < 5 and last.isalpha() and last.istitle()  # Rn. 12, Supp. 2d
    return _GOES_ON_WITH.get(last.lower(), "no item" if is_short else "")
