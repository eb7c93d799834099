"""The reference implementation of the audit: what the Go side must reproduce."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .export import POSITIONS
from .record import NEUTRAL, STRIDE, WINDOW, Meta, Tokenizer, assemble, prepared_payload, window_starts


@dataclass
class Raw:
    """What the model says about one record, before calibration."""

    logits: np.ndarray  # [windows, 4]
    scores: np.ndarray  # [windows, 3]
    residual: np.ndarray  # [windows, 8]
    unsafe: np.ndarray  # [tokens] probability that a token is unsafe, the maximum over its windows
    category: np.ndarray  # [tokens] most probable category but none
    ranges: np.ndarray  # [tokens, 2] original bytes
    n: int = 0  # windows of the record, those that the first stage cleared included


# The correction for the number of windows is bounded: otherwise whoever pads an
# attack with enough harmless text buys it off.
MAX_BIAS_WINDOWS = 4


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attack_logit(d: np.ndarray) -> np.ndarray:
    """log P(not allow) - log P(allow) of decision logits [..., 4]."""
    r = d[..., 1:]
    m = r.max(-1)
    return m + np.log(np.exp(r - m[..., None]).sum(-1)) - d[..., 0]


class Model:
    def __init__(self, folder: Path, threads: int = 2, file: str = "model.onnx"):
        import onnxruntime as ort

        so = ort.SessionOptions()
        so.intra_op_num_threads = threads
        so.inter_op_num_threads = 1
        self.s = ort.InferenceSession(str(folder / file), so, providers=["CPUExecutionProvider"])
        self.tok = Tokenizer(folder / "tokenizer.json")
        cfg = folder / "model.json"
        self.cfg = json.loads(cfg.read_text()) if cfg.exists() else {}
        self.stage1 = None
        if "stage1" in self.cfg:
            from .stage1 import Stage1

            self.stage1 = Stage1.load(folder / self.cfg["stage1"]["file"])
        self.window = self.cfg.get("window", WINDOW)
        self.stride = self.cfg.get("stride", STRIDE)

    def windows(self, data: bytes, meta: Meta = NEUTRAL):
        s, st, en, ids, off = prepared_payload(self.tok, data)
        head = self.tok.header(meta)
        starts = window_starts(len(ids), self.width(head, ids), self.stride)
        return s, st, en, ids, off, head, starts

    def width(self, head: list[int], ids: list[int]) -> int:
        """Payload tokens of a window: all, if they fit one row with the header."""
        return max(self.window, len(ids)) if len(head) + len(ids) + 3 <= POSITIONS else self.window

    def run(self, data: bytes, meta: Meta = NEUTRAL) -> Raw:
        s, st, en, ids, off, head, starts = self.windows(data, meta)
        n, width = len(starts), self.width(head, ids)
        if self.stage1 and n >= self.cfg["stage1"]["min_windows"]:
            s1 = [self.stage1.raw(ids[a : a + width]) for a in starts]
            keep = [a for a, v in zip(starts, s1) if v * self.stage1.scale >= self.stage1.threshold]
            starts = keep or [starts[int(np.argmax(s1))]]
        lg, sc, rs = [], [], []
        unsafe = np.zeros(len(ids), np.float32)
        cat = np.full(len(ids), 4, np.int64)
        for a in starts:
            w = ids[a : a + width]
            row, types = assemble(head, w)
            x = np.array([row], np.int64)
            d, c, r, t = self.s.run(None, {"input_ids": x, "attention_mask": np.ones_like(x), "token_type_ids": np.array([types], np.int64)})
            lg.append(d[0])
            sc.append(c[0])
            rs.append(r[0])
            p = softmax(t[0, len(head) + 2 : len(head) + 2 + len(w)])
            u = 1.0 - p[:, 0]
            better = u >= unsafe[a : a + len(w)]
            cat[a : a + len(w)] = np.where(better, p[:, 1:].argmax(-1) + 1, cat[a : a + len(w)]) if len(w) else cat[a:a]
            unsafe[a : a + len(w)] = np.maximum(unsafe[a : a + len(w)], u)
        rng = np.array([[st[x], en[y - 1]] for x, y in off], np.int64).reshape(-1, 2)
        return Raw(np.array(lg), np.array(sc), np.array(rs), unsafe, cat, rng, n)


def aggregate(raw: Raw, temperature: float = 1.0, bias: float = 0.0) -> float:
    """The record's calibrated attack logit: the worst window, corrected for the number of windows."""
    return float(attack_logit(raw.logits).max() / temperature - bias * np.log(min(raw.n, MAX_BIAS_WINDOWS)))


def token_runs(unsafe: np.ndarray, threshold: float, gap: int, minimum: int) -> list[tuple[int, int]]:
    """Unsafe token ranges: tokens at or over the threshold, gaps of up to `gap` closed, short runs dropped."""
    out: list[list[int]] = []
    for i in np.flatnonzero(unsafe >= threshold):
        if out and i - out[-1][1] <= gap:
            out[-1][1] = int(i) + 1
        else:
            out.append([int(i), int(i) + 1])
    return [(a, b) for a, b in out if b - a >= minimum]


def spans(raw: Raw, threshold: float, gap: int, minimum: int) -> list[tuple[int, int]]:
    """Unsafe byte ranges of the original payload."""
    return [(int(raw.ranges[a, 0]), int(raw.ranges[b - 1, 1])) for a, b in token_runs(raw.unsafe, threshold, gap, minimum)]
