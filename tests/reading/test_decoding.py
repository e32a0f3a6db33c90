"""Encodings of files: by mark, as UTF-8, by declaration or by a guess, and never replaced."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

import pytest

from rag_splitters.extras import install_command
from rag_splitters.langchain import FileLoader
from rag_splitters.llama_index import FileReader
from rag_splitters.reading.decoding import decode
from rag_splitters.reading.files import read_bytes
from tests.support.logs import own_messages

DOCUMENTS = Path(__file__).parents[1] / "data" / "documents"
TEXT = "Grüße aus Kyōto, 京都 und Москва 🚋"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (b"", "utf-8"),
    ],
)
def test_a_byte_order_mark_says_the_encoding(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mark: bytes, encoding: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(mark + TEXT.encode(encoding))
    assert [each.page_content for each in FileLoader(path).load()] == [TEXT]
    assert [each.text for each in FileReader().load_data(path)] == [TEXT]
    mail = mark + f"Subject: Tea\n\n{TEXT}".encode(encoding)
    (source,) = read_bytes(mail, "tea.eml")
    assert (source.text, source.metadata["subject"]) == (TEXT, "Tea")
    assert not own_messages(caplog)


@pytest.mark.parametrize(
    ("text", "encoding"), [("茶は熱い。\nTea", "iso2022_jp"), ("Tea\n차는 뜨겁다.", "iso2022_kr")]
)
def test_escape_sequences_say_the_encoding(
    caplog: pytest.LogCaptureFixture, text: str, encoding: str
) -> None:
    assert decode(text.encode(encoding), "a.txt") == text
    assert decode(f"\x1b$B {text}".encode(), "a.txt") == f"\x1b$B {text}"
    assert not own_messages(caplog)


@pytest.mark.parametrize(
    ("beginning", "encoding"),
    [
        ('<html><head><meta charset="windows-1251"></head>', "cp1251"),
        ("<META http-equiv=Content-Type content='text/html; charset=koi8-r'>", "koi8-r"),
        ("<?xml version='1.0' encoding='Shift_JIS'?><p>", "cp932"),
        ('@charset "EUC-KR"; /*', "cp949"),
        ("<meta charset=iso-8859-1>", "cp1252"),
        ("<meta charset=gb2312>", "gb18030"),
    ],
)
def test_html_xml_and_css_declare_their_encoding(
    caplog: pytest.LogCaptureFixture, beginning: str, encoding: str
) -> None:
    words = {"cp1252": "“naïve” €", "cp949": "안녕하세요", "cp932": "①日本語", "gb18030": "中文镕"}
    text = f"{beginning} {words.get(encoding, 'Привет')}"
    assert decode(text.encode(encoding), "a.html") == text
    assert not own_messages(caplog)


def test_utf_8_counts_more_than_what_is_declared() -> None:
    text = "<meta charset=iso-8859-1> café"
    assert decode(text.encode(), "a.html") == text


@pytest.mark.parametrize("label", ["hex", "rot13", "no-such", "utf-8"])
def test_a_wrong_declaration_is_not_followed(label: str) -> None:
    text = f"<meta charset={label}> " + "Das schöne Mädchen fährt über die Brücke nach Köln. " * 4
    assert decode(text.encode("cp1252"), "a.html") == text


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("agua_es.html", "cp1252"),
        ("randonnee_fr.txt", "cp1252"),
        ("uhrmacher_de.txt", "cp1252"),
        ("workshop_ja.txt", "cp932"),
        ("workshop_ja.txt", "euc-jp"),
        ("well_zh.txt", "gb18030"),
    ],
)
def test_other_encodings_are_guessed_and_named(
    caplog: pytest.LogCaptureFixture, name: str, encoding: str
) -> None:
    text = (DOCUMENTS / name).read_text(encoding="utf-8").replace("utf-8", "", 1)
    assert decode(text.encode(encoding), name) == text
    (message,) = own_messages(caplog)
    assert f"{name} is not in UTF-8 (byte 0x" in message
    assert "reading it as " in message


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("The end of naïve things.", "cp1252"),
        ("It’s 25 °C — and £40 a year.", "cp1252"),
        ("Nyckeln hänger på väggen i köket, bredvid dörren.", "cp1252"),
        ("Não é possível visitar a torre à noite.", "cp1252"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "cp1250"),
        ("Смотрители ежедневно проверяют лампу и вечером закрывают дверь.", "cp1251"),
    ],
)
def test_the_encoding_of_a_sentence_is_guessed(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding), "a.txt") == text


@pytest.mark.parametrize("label", ["", "<meta charset=utf-8>"])
@pytest.mark.parametrize(
    ("data", "letters"), [(b"\xe2\x80", "â€"), (b"\x93caf\xe9\x94", "“café”"), (b"\xd0\x81", "Ё")]
)
def test_damaged_letters_leave_the_others_as_they_are(
    caplog: pytest.LogCaptureFixture, data: bytes, letters: str, label: str
) -> None:
    text = f"{label}Смотрители ежедневно проверяют лампу и вечером закрывают дверь. "
    assert decode(text.encode() + data + b".", "a.txt") == f"{text}{letters}."
    assert ("reading such bytes as cp1252" in caplog.text) == (letters != "Ё")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0\1\2", "a.bin is not a text file: it has a NUL byte at offset 0"),
        (codecs.BOM_UTF16_LE + b"\x00\xd8", "its byte order mark says utf-16-le, but"),
        (bytes(range(128, 256)) * 20 + bytes(range(1, 32)) * 40, "in any known encoding"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(data, "a.bin")


def test_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    with pytest.raises(
        ImportError, match=r"a.txt is not in UTF-8 \(byte 0xe9 at offset 3\)"
    ) as caught:
        decode(b"caf\xe9!", "a.txt")
    assert install_command("encodings") in str(caught.value)
