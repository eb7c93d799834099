"""The first stage for long payloads: a linear model over hashed token ids.

It sees each window's token ids only. Unigrams and bigrams are hashed into a
table of int8 weights; the window's score is the largest sum over `SPAN`
neighbouring tokens. A window whose score is below the threshold is cleared and
the encoder does not run on it. See CONTRACT.md for the exact arithmetic.
"""
from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np

BITS = 16
SPAN = 64
MAGIC = b"ADS1"


def features(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Table slots of each token's unigram and of the bigram that ends in it."""
    a = ids.astype(np.uint64)
    prev = np.concatenate([np.zeros(1, np.uint64), a[:-1]]) if len(a) else a
    m = np.uint64(0xFFFFFFFF)
    uni = ((a * np.uint64(2654435761)) & m) >> np.uint64(32 - BITS)
    bi = ((((prev * np.uint64(31337) + a) & m) * np.uint64(2246822519)) & m) >> np.uint64(32 - BITS)
    return uni.astype(np.int64), bi.astype(np.int64)


class Stage1:
    def __init__(self, weights: np.ndarray, scale: float, threshold: float):
        self.w = weights.astype(np.int32)
        self.scale = scale
        self.threshold = threshold

    def raw(self, ids) -> int:
        """The integer score of a window."""
        ids = np.asarray(ids)
        if not len(ids):
            return 0
        u, b = features(ids)
        s = self.w[u] + self.w[b]
        c = np.concatenate([[0], np.cumsum(s)])
        n = min(SPAN, len(ids))
        return int((c[n:] - c[:-n]).max())

    def score(self, ids) -> float:
        return self.raw(ids) * self.scale

    def clears(self, ids) -> bool:
        return self.score(ids) < self.threshold

    def save(self, file: Path) -> None:
        file.write_bytes(MAGIC + struct.pack("<IIff", BITS, SPAN, self.scale, self.threshold) + self.w.astype(np.int8).tobytes())

    @staticmethod
    def load(file: Path) -> "Stage1":
        b = file.read_bytes()
        assert b[:4] == MAGIC
        bits, span, scale, threshold = struct.unpack("<IIff", b[4:20])
        assert bits == BITS and span == SPAN
        return Stage1(np.frombuffer(b[20:], np.int8), scale, threshold)


def data(mixture: dict, folder: Path | None, tok, seed: int) -> dict:
    """More windows than the encoder can afford: a second mixture, and every window of long benign records."""
    from . import mix
    from .record import WINDOW, prepared_payload, window_starts

    more = mix.build(folder, tok, seed + 4, 1.5)
    recs = [x for x in mix.read(folder / "train.jsonl.gz") if x["kind"] == "benign" and len(x["payload"]) > 800][:9000]
    ids = [prepared_payload(tok, x["payload"].encode("utf-8", "surrogatepass"))[3] for x in recs]
    ws = [np.array(x[a : a + WINDOW]) for x in ids for a in window_starts(len(x))]
    ws += [np.array(prepared_payload(tok, noise(r).encode())[3][:WINDOW]) for r in [random.Random(seed)] for _ in range(6000)]
    return {"ids": mixture["ids"] + more["ids"] + ws, "decision": mixture["decision"] + more["decision"] + [0] * len(ws)}


def noise(r: random.Random) -> str:
    """Signs, digits and bytes without words: they make the most tokens of a byte, and the encoder need not see them."""
    signs = "!?.,;:(){}<>+=*/-_|~^%$#@&[]'\"`\\"
    chars = r.choice([signs, signs[: r.randint(2, 30)], signs + "0123456789", "0123456789abcdef", "0123456789. ", "".join(map(chr, range(32, 127))), "".join(map(chr, range(32, 127))) + "\ufffd" * 60, signs + "    "])
    return "".join(r.choice(chars) for _ in range(600))


def train(mixture: dict, epochs: int = 5, lr: float = 0.02, seed: int = 3, threads: int = 1) -> Stage1:
    """Max-pooled logistic regression on the mixture's windows."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    rng = np.random.default_rng(seed)
    feats = [features(x) for x in mixture["ids"]]
    y = np.array([d > 0 for d in mixture["decision"]], np.float32)
    order = np.argsort([len(x) for x in mixture["ids"]], kind="stable")
    groups = [order[i : i + 512] for i in range(0, len(order), 512)]
    table = torch.zeros((1 << BITS) + 1, requires_grad=True)  # the last slot is padding
    bias = torch.full((1,), -2.0, requires_grad=True)
    opt = torch.optim.Adam([table, bias], lr=lr)
    for ep in range(epochs):
        rng.shuffle(groups)
        tot = 0.0
        for k, g in enumerate(groups):
            n = max(len(feats[i][0]) for i in g)
            n = max(n, SPAN)
            u = np.full((len(g), n), 1 << BITS)
            b = np.full((len(g), n), 1 << BITS)
            for j, i in enumerate(g):
                u[j, : len(feats[i][0])] = feats[i][0]
                b[j, : len(feats[i][1])] = feats[i][1]
            s = table[torch.from_numpy(u)] + table[torch.from_numpy(b)]
            c = torch.nn.functional.pad(s.cumsum(1), (1, 0))
            z = (c[:, SPAN:] - c[:, :-SPAN]).amax(1) + bias
            t = torch.from_numpy(y[g])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(z, t, pos_weight=torch.tensor(6.0)) + 1e-5 * (table**2).sum()
            opt.zero_grad()
            loss.backward()
            with torch.no_grad():
                table.grad[-1] = 0
            for gr in opt.param_groups:
                gr["lr"] = lr * (1 - (ep * len(groups) + k) / (epochs * len(groups)))
            opt.step()
            tot += loss.item()
        print(f"stage 1, epoch {ep}: loss {tot / len(groups):.4f}", flush=True)
    w = table.detach().numpy()[:-1]
    scale = float(np.quantile(np.abs(w), 0.9995) / 127)
    q = np.clip(np.rint(w / scale), -127, 127).astype(np.int8)
    return Stage1(q, scale, 0.0)
