"""The audit record as text: header, payload tokens, windows (CONTRACT.md)."""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from .prepare import prepare, prepare_text

WINDOW = 192
STRIDE = 160
MAX_INTENT_TOKENS = 32
MAX_INTENT_RUNES = 160
MAX_HEADER_TOKENS = 48
CLS, SEP, PAD, UNK = 101, 102, 0, 100

SURFACES = ("context", "authority", "capability", "any")
BOUNDARIES = ("reasoning", "persistence", "authority", "execution", "disclosure", "any")
CHANNELS = ("user", "file", "web", "tool", "agent", "memory", "email", "webhook", "skill", "other", "any")
TRUSTS = ("owner", "trusted", "derived", "untrusted", "hostile", "any")
SINKS = (
    "reasoning", "memory", "identity", "skill", "exec", "tool", "message", "file",
    "web", "policy", "config", "plan", "payment", "other", "any",
)  # fmt: skip
BOUNDARY_OF_SINK = {
    "reasoning": "reasoning",
    "memory": "persistence", "skill": "persistence", "file": "persistence",
    "plan": "persistence", "config": "persistence", "policy": "persistence",
    "identity": "authority",
    "exec": "execution", "tool": "execution", "payment": "execution",
    "message": "disclosure", "web": "disclosure",
}  # fmt: skip
# Names in the data files -> names in the header.
DATA_CHANNEL = {"tool_output": "tool"}
DATA_SINK = {"llm_context": "reasoning", "tool_call": "tool"}


@dataclass(frozen=True)
class Meta:
    surface: str = "any"
    boundary: str = "any"
    channel: str = "any"
    trust: str = "any"
    sink: str = "any"
    intent: str | None = None


NEUTRAL = Meta()


def meta_of(rec: dict) -> Meta:
    """The header values of a data record."""
    channel = DATA_CHANNEL.get(rec["source_channel"], rec["source_channel"])
    sink = DATA_SINK.get(rec["sink"], rec["sink"])
    channel = channel if channel in CHANNELS else "other"
    sink = sink if sink in SINKS else "other"
    trust = "untrusted"
    if channel == "user":  # the data's user channel holds jailbreak texts: it is not the owner
        channel = trust = "any"
    return Meta(rec["surface"], BOUNDARY_OF_SINK.get(sink, "any"), channel, trust, sink, rec.get("owner_intent"))


def header_prefix(m: Meta) -> str:
    return f"{m.surface} {m.boundary} | {m.channel} {m.trust} | {m.sink} |"


def intent_text(intent: str | None) -> str:
    s = prepare_text(intent or "").strip(" ")[:MAX_INTENT_RUNES].strip(" ")
    return s or "none"


class Tokenizer:
    """The base model's WordPiece, without its truncation and padding."""

    def __init__(self, file: Path | str):
        from tokenizers import Tokenizer as T

        self.t = T.from_file(str(file))
        self.t.no_truncation()
        self.t.no_padding()

    def encode(self, texts: list[str]):
        return self.t.encode_batch(texts, add_special_tokens=False)

    @lru_cache(maxsize=1 << 15)
    def ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.t.encode(text, add_special_tokens=False).ids)

    def header(self, m: Meta) -> list[int]:
        ids = list(self.ids(header_prefix(m))) + list(self.ids(intent_text(m.intent)))[:MAX_INTENT_TOKENS]
        return ids[:MAX_HEADER_TOKENS]


def window_starts(n: int, window: int = WINDOW, stride: int = STRIDE) -> list[int]:
    """Starts of the windows over n tokens: every token is covered, the last window ends at the end."""
    if n <= window:
        return [0]
    starts = list(range(0, n - window, stride))
    starts.append(n - window)
    return starts


def assemble(header: list[int], window: list[int]) -> tuple[list[int], list[int]]:
    """ids and token types of `[CLS] A [SEP] B [SEP]`."""
    ids = [CLS, *header, SEP, *window, SEP]
    types = [0] * (len(header) + 2) + [1] * (len(window) + 1)
    return ids, types


def pad(rows: list[tuple[list[int], list[int]]], multiple: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = max(len(r[0]) for r in rows)
    n = -(-n // multiple) * multiple
    ids = np.zeros((len(rows), n), np.int64)
    mask = np.zeros_like(ids)
    types = np.zeros_like(ids)
    for i, (a, t) in enumerate(rows):
        ids[i, : len(a)] = a
        mask[i, : len(a)] = 1
        types[i, : len(a)] = t
    return ids, mask, types


def prepared_payload(tok: Tokenizer, data: bytes):
    """Prepared text, its offset map, token ids, and token character ranges."""
    s, st, en = prepare(data)
    e = tok.t.encode(s, add_special_tokens=False)
    return s, st, en, e.ids, e.offsets
