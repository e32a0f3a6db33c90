"""Reads mails: the text of each message, with metadata from its headers and positions."""

from __future__ import annotations

import binascii
import logging
import quopri
import re
from collections.abc import Iterator
from contextlib import suppress
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import HeaderParser
from email.utils import collapse_rfc2231_value, parsedate_to_datetime
from typing import NamedTuple

from rag_splitters.structure.html.text import plain_page
from rag_splitters.structure.html.tree import parse_html
from rag_splitters.text.boundaries import line_start, skip_space, trim_space
from rag_splitters.text.charsets import WESTERN, declared_encoding, is_damaged_utf_8
from rag_splitters.text.excerpt import Excerpt, ExcerptWriter, Replacement
from rag_splitters.text.lines import BLANK_LINE
from rag_splitters.text.origin import READ_ALL, Reading, ReadingOptions, UnreadableError
from rag_splitters.text.surrogates import without_surrogates

logger = logging.getLogger(__name__)

_LONGEST_LINE = 300  # characters of the line above a quotation
_LONGEST_HEADER = 4_000  # characters; Python takes quadratic time for them
_DEEPEST = 20  # parts inside parts
_SPACE = "\ufeff \t\r\n"
_BEGINNING = 2_000  # characters in which the first line of a mailbox begins
_MESSAGE = re.compile(
    r"(?:\A[\s\ufeff]*|\n[ \t]*\r?\n)"
    r"(?=From \S{1,300}[^\n]{0,100}\d{4}[^\n]{0,100}\n[A-Za-z][\w-]{0,100}:)"
)
_HEADER_LINE = re.compile(r"[!-9;-~]+[ \t]*:|[ \t]+\S")
_SOFT_BREAK = r"=[ \t]*(?:\r\n?|\n)"  # a server on the way may have added white space
_QUOTED_PRINTABLE = re.compile(rf"(?:=[\dA-Fa-f]{{2}}|{_SOFT_BREAK})+")
_QUOTATION = re.compile(
    r"^[ \t]?>[^\n]*(?:\n[ \t]?>[^\n]*|\n[ \t]*\r?(?=\n[ \t]?>))*", re.MULTILINE
)
_ORIGINAL = re.compile(
    r"^[ \t]{0,9}(?:-{3,20} ?(?:original message|message d'origine|mensaje original|"
    r"messaggio originale|ursprüngliche nachricht) ?-{3,20}"
    r"|From:[^\n]*\n(?:To:[^\n]*\n)?Sent:[^\n]*\n(?:(?:To|Cc):[^\n]*\n)*Subject:)",  # Outlook
    re.IGNORECASE | re.MULTILINE,
)
_COMPATIBLE = re.compile(r"utf-?8\Z|us-ascii|latin-?1|iso-?8859|windows-|cp125|koi8", re.IGNORECASE)
_SHIFTING = ("iso-2022", "utf-7", "hz")  # encodings whose bytes are ASCII

_USUAL_HEADERS = frozenset(
    "from to cc subject date message-id received return-path delivered-to mime-version".split()
)
MAIL_KEYS = ("subject", "sender", "date")
"""The metadata keys for the headers of a mail."""


class _Part(NamedTuple):
    """A message, or a part of one: its headers, where they begin, and where its content is."""

    headers: Message
    begin: int
    start: int
    end: int
    default_type: str = "text/plain"
    depth: int = 0

    @property
    def type(self) -> str:
        """Its media type, in lower case."""
        if "content-type" not in self.headers:
            return self.default_type
        return self.headers.get_content_type()

    @property
    def is_attachment(self) -> bool:
        """Whether it is to be saved and not displayed; a whole message never is."""
        if self.depth == 0:
            return False
        disposition = self.headers.get_content_disposition()
        return disposition == "attachment" or (disposition is None and self.name != "")

    @property
    def name(self) -> str:
        """The name of its file."""
        return _decode_header(self.headers.get_filename("") or "")


def read_mails(
    text: str,
    options: ReadingOptions = READ_ALL,
    *,
    is_bytes: bool = False,
    name: str = "a mail",
) -> list[Reading]:
    """Read the messages of a mailbox, or a single mail.

    The text of each message is read; of alternatives, the plain text, else HTML without tags. A
    message inside a message follows the text around it, after its sender, date and subject.
    Metadata: `subject`, which is also the `title`, `sender`, `date` (ISO 8601, or unchanged if it
    is not a valid date) and `message_id`.

    Parameters:
        text: the mailbox ("From " lines between the messages) or mail.
        options: whether to keep quotations and attachments.
        is_bytes: whether each character of `text` is a byte (Latin-1), as in a mail of several
            encodings.
        name: the name of the file, for warnings about encodings.

    Returns: the text of each message, with its positions. Text from a base64 or HTML part has the
    position of the whole part.

    Raises UnreadableError if there are no headers.

    >>> from rag_splitters.text.origin import ReadingOptions
    >>> mail = "From: Ann <ann@example.org>\\nSubject: Tea\\n\\nIt is ready.\\n\\n> When?\\n"
    >>> (reading,) = read_mails(mail, ReadingOptions(quotations=False))
    >>> reading.text, reading.metadata["sender"]
    ('It is ready.', 'Ann <ann@example.org>')
    """
    reader = _Reader(text, options, name, is_bytes=is_bytes)
    readings = []
    for _, begin, end in _messages(text):
        if not _HEADER_LINE.match(text, begin):
            line = text.count("\n", 0, begin) + 1
            raise UnreadableError(f"line {line} is not a header such as 'Subject: Tea'")
        readings.append(reader.read(begin, end))
    return readings


def begins_mail(text: str) -> bool:
    """Whether a text begins with the headers of a mail.

    >>> begins_mail("From: Ann\\nSubject: Tea\\n\\nHot."), begins_mail("From: Ann\\nIt is hot.")
    (True, False)
    """
    if _MESSAGE.match(text) or not _HEADER_LINE.match(text):
        return _MESSAGE.match(text) is not None
    names = {name.lower() for name in _parse_headers(text[:_LONGEST_HEADER])}
    return len(names & _USUAL_HEADERS) > 1 and bool(names & {"from", "subject"})


def _parse_headers(text: str) -> Message:
    return HeaderParser().parsestr(without_surrogates(text))  # which it cannot encode


def may_be_mail(text: str) -> bool:
    """Whether a text begins with a header, or with the first line of a mailbox."""
    return (_MESSAGE.match(text) or _HEADER_LINE.match(text)) is not None


def mail_headers(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start of each message, the start of its content, and its subject.

    >>> list(mail_headers("From: Ann\\nSubject: Tea\\n\\nIt is ready."))
    [(0, 24, 'Tea')]
    """
    reader = _Reader(text, READ_ALL, "", is_bytes=False)
    for start, begin, end in _messages(text):
        part = reader.part(begin, end)
        yield start, part.start, reader.header(part, "subject")


def _messages(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield start of each message, the end of its "From " line in a mailbox, and its end."""
    starts = [len(text) - len(text.lstrip(_SPACE))]
    if _is_mailbox(text):
        starts = [match.end() for match in _MESSAGE.finditer(text)] or starts
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        is_marked = text.startswith("From ", start, end)
        yield start, text.find("\n", start, end) + 1 if is_marked else start, end


def _is_mailbox(text: str) -> bool:
    return text[:_BEGINNING].lstrip(_SPACE).startswith("From ")


class _Reader:
    """Reads the messages of a text with the same options."""

    def __init__(self, text: str, options: ReadingOptions, name: str, *, is_bytes: bool) -> None:
        self.text, self.options, self.name, self.is_bytes = text, options, name, is_bytes
        self.is_mailbox = _is_mailbox(text)
        self.writer = ExcerptWriter(text)

    def read(self, start: int, end: int) -> Reading:
        """Read a message as a text with metadata."""
        self.writer = ExcerptWriter(self.text)
        part = self.part(start, end)
        self._write(part)
        headers = self._metadata_of(part)
        identifier = str(part.headers.get("message-id", "")).strip(" \t\r\n<>")
        metadata = {**headers, "title": headers.get("subject"), "message_id": identifier}
        metadata = {key: value for key, value in metadata.items() if value}
        return Reading(self.writer.excerpt(), {}, metadata)

    def part(self, start: int, end: int, default_type: str = "text/plain", depth: int = 0) -> _Part:
        """Read the headers of the message or part between two offsets."""
        blank = BLANK_LINE.search(self.text, start, end)
        stop, body = blank.span() if blank else (end, end)
        if start < end and self.text.startswith(("\n", "\r\n"), start):
            stop, body = start, start + 1  # a part without headers
        headers = _parse_headers(self.text[start:stop] + "\n\n")
        for name in ("content-type", "content-disposition"):
            if len(value := str(headers.get(name, ""))) > _LONGEST_HEADER:
                headers.replace_header(name, value[:_LONGEST_HEADER])
        return _Part(headers, start, body, end, default_type, depth)

    def _metadata_of(self, part: _Part) -> dict[str, str]:
        """Return the subject, sender and date of a message, as far as it has them."""
        subject, sender, date = (self.header(part, name) for name in ("subject", "from", "date"))
        with suppress(ValueError, TypeError, IndexError, OverflowError):
            date = parsedate_to_datetime(date).isoformat()
        headers = zip(MAIL_KEYS, (subject, sender, date), strict=True)
        return {key: value for key, value in headers if value}

    def header(self, part: _Part, name: str) -> str:
        """Return a header as text in one line; "" if there is none."""
        value = str(part.headers.get(name, ""))[:_LONGEST_HEADER]
        if self.is_bytes and not value.isascii():
            value = self._in_charset(value.encode("latin-1"), "utf-8")
        return " ".join(_decode_header(value).split())

    def _write(self, part: _Part) -> None:
        """Write the text of a part and of the parts in it."""
        if part.type.startswith("multipart/") and part.depth < _DEEPEST:
            parts = list(self._parts_of(part))
            if part.type == "multipart/alternative":
                parts = self._best(parts)
            for each in parts:
                self._write(each)
        elif part.type == "message/rfc822" and part.depth < _DEEPEST:
            if self.options.attachments or not part.is_attachment:
                self._write_message(part)
        elif part.is_attachment:
            if self.options.attachments and part.type.startswith("text/"):
                self._begin()
                self.writer.add(f"Attachment: {part.name or part.type}\n\n", part.begin, part.start)
                self._write_text(part)
        elif part.type.startswith("text/"):
            self._begin()
            self._write_text(part)

    def _begin(self) -> None:
        self.writer.add("\n\n" if self.writer.length else "")

    def _write_message(self, part: _Part) -> None:
        """Write a message that is a part of another one, after its headers."""
        encoding = _encoding_of(part)
        if encoding in ("base64", "quoted-printable"):  # against the standard, but it exists
            data = _bytes_of(self.text[part.start : part.end], encoding, self.is_bytes)
            inner = _Reader(data.decode("latin-1"), self.options, self.name, is_bytes=True)
            inner._write_with_headers(inner.part(0, len(data), depth=part.depth + 1))
            self._begin()
            self.writer.add(inner.writer.excerpt().text, part.start, part.end)
        else:
            self._write_with_headers(self.part(part.start, part.end, depth=part.depth + 1))

    def _write_with_headers(self, message: _Part) -> None:
        headers = self._metadata_of(message).items()
        self._begin()
        text = "\n".join(f"{key.capitalize()}: {value}" for key, value in headers)
        self.writer.add(text, message.begin, message.start)
        self._write(message)

    def _parts_of(self, part: _Part) -> Iterator[_Part]:
        """Yield the parts between boundary lines; the whole body if there are none."""
        boundary = part.headers.get_param("boundary", "")
        name = collapse_rfc2231_value(boundary).rstrip() if boundary else ""
        default = "message/rfc822" if part.type == "multipart/digest" else "text/plain"
        lines = re.compile(rf"(?:\A|\r?\n)--{re.escape(name)}(--)?[ \t]*(?:\r?\n|\Z)")
        start, body = -1, self.text[part.start : part.end]
        position = 0
        while name and (line := lines.search(body, position)):
            if start >= 0:
                yield self.part(
                    part.start + start, part.start + line.start(), default, part.depth + 1
                )
            if line[1]:
                return
            position = max(line.end() - 1, line.start() + 1)  # its line break may begin the next
            start = line.end()
        if start >= 0:  # the last part was not closed
            yield self.part(part.start + start, part.end, default, part.depth + 1)
        elif position == 0:
            yield _Part(Message(), part.start, part.start, part.end, depth=part.depth + 1)

    def _best(self, parts: list[_Part]) -> list[_Part]:
        """Choose of alternatives the plain text if it is not blank, else the last HTML, if any."""
        for part in parts:
            if part.type == "text/plain" and self._excerpt(part).text.strip():
                return [part]
        readable = [p for p in parts if p.type.startswith(("text/", "multipart/", "message/"))]
        others = [part for part in readable if part.type != "text/plain"]
        pages = [p for p in others if p.type == "text/html" or not p.type.startswith("text/")]
        return (pages or others)[-1:] or parts[:1]

    def _write_text(self, part: _Part) -> None:
        """Write a text part without its quotations, if these are dropped."""
        excerpt = self._excerpt(part)
        if part.type == "text/html":
            page = excerpt.text
            page = page if self.options.quotations else _without_html_quotations(page)
            self.writer.add(plain_page(page, False).text, part.start, part.end)
            return
        for number, (low, high) in enumerate(_parts_to_keep(excerpt.text, self.options.quotations)):
            self.writer.add("\n\n" if number else "")
            self.writer.extend(excerpt, low, high)

    def _excerpt(self, part: _Part) -> Excerpt:
        """Return the decoded text of a part."""
        raw = self.text[part.start : part.end]
        encoding = _encoding_of(part)
        charset = str(part.headers.get_content_charset() or "us-ascii")
        if encoding == "base64":
            data = _bytes_of(raw, encoding, self.is_bytes)
            return self._decoded(part, self._in_charset(data, charset))
        if encoding == "quoted-printable":
            return self._from_quoted_printable(part, charset)
        is_bytes = self.is_bytes and not raw.isascii()
        is_shifting = raw.isascii() and charset.startswith(_SHIFTING)
        if not (is_bytes or is_shifting):
            return self._from_lines(part, "")
        data = raw.encode("latin-1")
        encoding = _charset_of(data, charset, self.name)
        if _COMPATIBLE.match(encoding):
            return self._from_lines(part, encoding)
        return self._decoded(part, data.decode(encoding, WESTERN))

    def _decoded(self, part: _Part, text: str) -> Excerpt:
        """Return a text that is made from a whole part."""
        return Excerpt.of(self.text, part.start, part.end, [(part.start, part.end, text)])

    def _from_lines(self, part: _Part, encoding: str) -> Excerpt:
        """Return a text unchanged, except that the ">From " of a mailbox becomes "From ".

        Its characters are bytes in the encoding, unless that is "".
        """
        lines: list[Replacement] = []
        position = part.start
        while position < part.end:
            end = self.text.find("\n", position, part.end) + 1 or part.end
            line = self.text[position:end]
            if self.is_mailbox and line[0] == ">" and line.lstrip(">").startswith("From "):
                lines.append((position, position + 1, ""))
                line, position = line[1:], position + 1
            text = line.encode("latin-1").decode(encoding, WESTERN) if encoding else line
            lines.append((position, end, text))
            position = end
        return Excerpt.of(self.text, part.start, part.end, lines)

    def _from_quoted_printable(self, part: _Part, charset: str) -> Excerpt:
        raw = self.text[part.start : part.end]
        data = _bytes_of(raw, "quoted-printable", self.is_bytes)
        encoding = _charset_of(data, charset, self.name)
        decoded = data.decode(encoding, WESTERN)
        if _COMPATIBLE.match(encoding) and raw.isascii():
            codes = _QUOTED_PRINTABLE.finditer(self.text, part.start, part.end)
            letters = [
                (*code.span(), _decode_quoted(code[0].encode("ascii")).decode(encoding, WESTERN))
                for code in codes
            ]
            excerpt = Excerpt.of(self.text, part.start, part.end, letters)
            if excerpt.text == decoded:  # not such as for white space at the ends of lines
                return excerpt
        return self._decoded(part, decoded)

    def _in_charset(self, data: bytes, charset: str) -> str:
        """Decode bytes in the declared encoding, or in one that fits."""
        return data.decode(_charset_of(data, charset, self.name), WESTERN)


def _encoding_of(part: _Part) -> str:
    return str(part.headers.get("content-transfer-encoding", "")).strip().lower()


def _bytes_of(raw: str, encoding: str, is_bytes: bool) -> bytes:
    """Decode the content of a part; of damaged base64, as much as possible."""
    data = raw.encode("latin-1") if is_bytes else raw.encode("utf-8", "surrogatepass")
    if encoding == "quoted-printable":
        return _decode_quoted(data)
    letters = re.sub(rb"[^A-Za-z0-9+/]", b"", data)
    with suppress(binascii.Error):
        return binascii.a2b_base64(letters + b"=" * (-len(letters) % 4))
    return binascii.a2b_base64(letters[: len(letters) // 4 * 4])


def _charset_of(data: bytes, charset: str, name: str) -> str:
    """Return the declared encoding; if bytes do not fit, UTF-8 or, with `WESTERN`, windows-1252."""
    charset = charset.strip("'\" ").lower()
    own = () if charset == "us-ascii" else (charset,)  # mails without an encoding have this one
    for declared in (*own, "utf-8"):
        with suppress(LookupError, ValueError):  # "hex" and "rot13" are no text encodings
            encoding = declared_encoding(declared)
            data.decode(encoding)
            return encoding
    if is_damaged_utf_8(data):
        logger.warning("%s has damaged UTF-8: reading such bytes as cp1252", name)
        return "utf-8"
    logger.warning("%s has text that is not in %s: read as cp1252", name, charset)
    return "cp1252"


def _decode_quoted(data: bytes) -> bytes:
    """Decode quoted-printable, in which white space at the end of a line does not count.

    >>> _decode_quoted(b"a caf=C3=  \\n=A9").decode()
    'a café'
    """
    return quopri.decodestring(re.sub(_SOFT_BREAK.encode(), b"", data))


def _decode_header(header: str) -> str:
    """Decode a header such as "=?utf-8?q?Caf=C3=A9?="."""
    if "=?" not in header:
        return header
    try:
        words = [(word, name and declared_encoding(name)) for word, name in decode_header(header)]
        return str(make_header(words))
    except (MessageError, LookupError, ValueError):
        return header


def _parts_to_keep(text: str, quotations: bool) -> list[tuple[int, int]]:
    """Return start and end of each part of a plain text to keep, without blank lines around it."""
    dropped = [] if quotations else list(_quotations(text))
    begins = [0, *(end for _, end in dropped)]
    ends = [*(start for start, _ in dropped), len(text)]
    return [
        (max(low, line_start(text, skip_space(text, low))), trim_space(text, low, high))
        for low, high in zip(begins, ends, strict=True)
        if text[low:high].strip()
    ]


def _quotations(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the quotations in a plain text, with the lines that introduce them."""
    original = _ORIGINAL.search(text)
    stop = original.start() if original else len(text)
    position = 0
    for quotation in _QUOTATION.finditer(text, 0, stop):
        start = quotation.start()
        low = max(position, start - 2 * _LONGEST_LINE)
        yield low + _attribution_start(text[low:start]), quotation.end()
        position = quotation.end()
    if original:
        yield stop, len(text)


def _attribution_start(text: str) -> int:
    """Return the start of a last line such as "On 5 Feb 2024, Ann <ann@example.org> wrote:".

    It ends with a colon and has a digit or an address; a mail program may have divided it.
    """
    body = text.rstrip()
    if not body.endswith(":") or text[len(body) :].count("\n") > 2:
        return len(text)
    end = len(body)
    for _ in range(2):
        start = body.rfind("\n", 0, end) + 1
        line = body[start:]
        if not body[start:end].strip():
            break
        if re.search(r"[\d@<]", line) and len(line) < _LONGEST_LINE:
            return start
        end = max(start - 1, 0)
    return len(text)


def _without_html_quotations(page: str) -> str:
    """Remove `blockquote` elements from HTML."""
    quotations = parse_html(page).named("blockquote")
    return Excerpt.of(page, 0, len(page), [(each.start, each.end, "") for each in quotations]).text
