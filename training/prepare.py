"""prepare(): the one text normalisation, equal to the Go side's (CONTRACT.md).

Works on bytes and keeps, for every character of the result, the range of
original bytes that it came from.
"""
from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

SPECIALS = ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
_SPECIAL_RX = re.compile(r"\[(?=(?:CLS|SEP|PAD|UNK|MASK)\])")
# Text that prepare() leaves as it is: printable ASCII, single spaces, no long runs.
_PLAIN = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*\Z")
_RUN = re.compile(r"([^A-Za-z0-9])\1{3}")


@lru_cache(maxsize=1 << 16)
def _map(c: str) -> str:
    """The characters that one input character becomes, before runs are collapsed."""
    o = ord(c)
    if 0xDC80 <= o <= 0xDCFF:  # an invalid byte (surrogateescape)
        return " "
    if 0xE0020 <= o <= 0xE007E:
        return chr(o - 0xE0000)
    if 0xE0000 <= o <= 0xE007F or 0xFE00 <= o <= 0xFE0F or 0xE0100 <= o <= 0xE01EF:
        return ""
    if c in "\t\n\r":
        return " "
    cat = unicodedata.category(c)
    if cat in ("Cf", "Cc", "Co", "Cs"):
        return ""
    s = c if o < 128 else unicodedata.normalize("NFKC", c)
    return "".join(" " if x in "\t\n\r" or unicodedata.category(x)[0] == "Z" else x for x in s)


@lru_cache(maxsize=1 << 16)
def _alnum(c: str) -> bool:
    return unicodedata.category(c)[0] in "LN"


def prepare(data: bytes) -> tuple[str, list[int], list[int]]:
    """Return the prepared text and, per character, its first and past-the-end original byte."""
    text = data.decode("utf-8", "surrogateescape")
    out: list[str] = []
    start: list[int] = []
    end: list[int] = []
    pos = 0
    run = 0
    last = ""
    for c in text:
        o = ord(c)
        n = 1 if o < 0x80 or 0xDC80 <= o <= 0xDCFF else 2 if o < 0x800 else 3 if o < 0x10000 else 4
        for x in _map(c):
            if x == last:
                limit = 1 if x == " " else 3
                if run >= limit and (x == " " or not _alnum(x)):
                    end[-1] = pos + n
                    continue
                run += 1
            else:
                last, run = x, 1
            out.append(x)
            start.append(pos)
            end.append(pos + n)
        pos += n
    s = "".join(out)
    if "[" in s:
        for m in reversed(list(_SPECIAL_RX.finditer(s))):
            i = m.end()  # the space takes no bytes of its own
            s = s[:i] + " " + s[i:]
            start.insert(i, end[i - 1])
            end.insert(i, end[i - 1])
    return s, start, end


def prepare_text(text: str) -> str:
    """prepare() of a string, without the offset map."""
    if _PLAIN.match(text) and not _RUN.search(text) and "[" not in text:
        return text
    return prepare(text.encode("utf-8", "surrogatepass"))[0]


def prepare_with_span(text: str, span: tuple[int, int] | None) -> tuple[str, tuple[int, int] | None]:
    """prepare() of a string, and where a character range of it went."""
    if span is None:
        return prepare_text(text), None
    if _PLAIN.match(text) and not _RUN.search(text) and "[" not in text:
        return text, span
    a = len(text[: span[0]].encode("utf-8", "surrogatepass"))
    b = len(text[: span[1]].encode("utf-8", "surrogatepass"))
    s, st, en = prepare(text.encode("utf-8", "surrogatepass"))
    idx = [i for i in range(len(s)) if st[i] < b and en[i] > a]
    return s, ((idx[0], idx[-1] + 1) if idx else None)
