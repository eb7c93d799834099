"""Evaluation: figures per source at the one default threshold, with 95 % intervals."""
from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
from tqdm import tqdm

from . import infer
from .mix import cut, find_span, read
from .record import NEUTRAL, meta_of

PHRASE = re.compile(r"(ignore|disregard|forget)\s+(all\s+)?(of\s+)?(the\s+|your\s+|any\s+|my\s+)?(previous|prior|above|earlier|preceding)\s+(instruction|prompt|direction|command|rule)", re.I)


def wilson(k: int, n: int) -> tuple[float, float]:
    if n == 0:
        return (0.0, 1.0)
    z, p = 1.96, k / n
    d = 1 + z * z / n
    c = p + z * z / (2 * n)
    h = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, (c - h) / d), min(1.0, (c + h) / d)


def share(k: int, n: int) -> dict:
    lo, hi = wilson(k, n)
    return {"k": k, "n": n, "share": round(k / n, 4) if n else None, "low": round(lo, 4), "high": round(hi, 4)}


def auc(pos: np.ndarray, neg: np.ndarray) -> float:
    if not len(pos) or not len(neg):
        return float("nan")
    x = np.concatenate([pos, neg])
    order = x.argsort(kind="mergesort")
    rank = np.empty(len(x))
    rank[order] = np.arange(1, len(x) + 1)
    for v in np.unique(x):  # ties get the middle rank
        m = x == v
        if m.sum() > 1:
            rank[m] = rank[m].mean()
    return float((rank[: len(pos)].sum() - len(pos) * (len(pos) + 1) / 2) / (len(pos) * len(neg)))


def ece(p: np.ndarray, y: np.ndarray, bins: int = 15) -> float:
    b = np.minimum((p * bins).astype(int), bins - 1)
    return float(sum(abs(p[b == k].mean() - y[b == k].mean()) * (b == k).mean() for k in range(bins) if (b == k).any()))


def ece_interval(p: np.ndarray, y: np.ndarray, n: int = 300, seed: int = 1) -> tuple[float, float]:
    r = np.random.default_rng(seed)
    xs = []
    for _ in range(n):
        i = r.integers(0, len(p), len(p))
        xs.append(ece(p[i], y[i]))
    return float(np.percentile(xs, 2.5)), float(np.percentile(xs, 97.5))


def payload(rec: dict) -> bytes:
    return rec["payload"].encode("utf-8", "surrogatepass")


def run_all(model: infer.Model, recs: list[dict], metadata: bool, desc: str = "") -> list[infer.Raw]:
    return [model.run(payload(x), meta_of(x) if metadata else NEUTRAL) for x in tqdm(recs, desc=desc, mininterval=5)]


def span_f1(raw: infer.Raw, rec: dict, cfg: dict) -> tuple[float, float] | None:
    """Token F1 of the marked span, and the share of carrier tokens kept."""
    sp = find_span(rec)
    if sp is None:
        return None
    a = len(rec["payload"][: sp[0]].encode("utf-8", "surrogatepass"))
    b = len(rec["payload"][: sp[1]].encode("utf-8", "surrogatepass"))
    gold = (raw.ranges[:, 0] < b) & (raw.ranges[:, 1] > a)
    pred = np.zeros(len(gold), bool)
    for x, y in infer.token_runs(raw.unsafe, cfg["threshold"], cfg["gap"], cfg["min_tokens"]):
        pred[x:y] = True
    tp = (gold & pred).sum()
    f = 2 * tp / max(1, gold.sum() + pred.sum())
    kept = 1.0 - (pred & ~gold).sum() / max(1, (~gold).sum())
    return float(f), float(kept)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-np.asarray(x, dtype=np.float64)))


def report(model: infer.Model, recs: list[dict], raws: list[infer.Raw], cfg: dict, metadata: bool, rewrite: bool = True) -> dict:
    """Figures of one group of records."""
    t, b, th = cfg["temperature"], cfg["window_bias"], cfg["thresholds"]["stop"]
    y = np.array([x["kind"] == "attack" for x in recs])
    z = np.array([infer.aggregate(r, t, b) for r in raws])
    p = sigmoid(z)
    stop = p >= th
    out: dict = {"n": len(recs)}
    na, nb = int(y.sum()), int((~y).sum())
    if na:
        out["stopped"] = share(int((stop & y).sum()), na)
        ph = np.array([bool(PHRASE.search(x["payload"])) for x in recs])
        m = y & ~ph
        out["stopped_without_phrase"] = share(int((stop & m).sum()), int(m.sum()))
    if nb:
        out["passed"] = share(int((~stop & ~y).sum()), nb)
    if na and nb:
        out["balanced"] = round((out["stopped"]["share"] + out["passed"]["share"]) / 2, 4)
        out["auc"] = round(auc(z[y], z[~y]), 4)
        thr = np.quantile(z[~y], 0.99, method="higher")
        out["recall_at_1pct_fpr"] = share(int((z[y] > thr).sum()), na)
    out["ece"] = round(ece(p, y), 4)
    out["ece_interval"] = [round(v, 4) for v in ece_interval(p, y)]
    # attributable share and spans
    idx = [i for i in range(len(recs)) if y[i] and find_span(recs[i]) and recs[i]["injected_span"].strip() != recs[i]["payload"].strip()]
    if idx and rewrite:
        f1s, kept, good, gone, attrib, nstop = [], [], 0, 0, 0, 0
        for i in tqdm(idx, desc="spans", mininterval=5):
            f, k = span_f1(raws[i], recs[i], cfg["span"])
            f1s.append(f)
            kept.append(k)
            if stop[i]:
                nstop += 1
                rest = cut(recs[i]["payload"], find_span(recs[i])).encode("utf-8", "surrogatepass")
                q = sigmoid(infer.aggregate(model.run(rest, meta_of(recs[i]) if metadata else NEUTRAL), t, b))
                attrib += bool(q < th)
            data = payload(recs[i])
            for x, e in reversed(infer.spans(raws[i], **{"threshold": cfg["span"]["threshold"], "gap": cfg["span"]["gap"], "minimum": cfg["span"]["min_tokens"]})):
                data = data[:x] + b" " + data[e:]
            ok = False
            if data != payload(recs[i]):
                q = sigmoid(infer.aggregate(model.run(data, meta_of(recs[i]) if metadata else NEUTRAL), t, b))
                ok = bool(q < th)
            gone += ok
            good += bool(ok and f >= 0.8 and k >= 0.95)
        f1 = np.array(f1s)
        out["span_f1_080"] = share(int((f1 >= 0.8).sum()), len(idx))
        out["span_f1_mean"] = round(float(f1.mean()), 4)
        out["carrier_kept_mean"] = round(float(np.mean(kept)), 4)
        out["rewrite_passes"] = share(gone, len(idx))
        out["span_and_rewrite"] = share(good, len(idx))
        out["attributable"] = share(attrib, nstop)
    return out


def fmt(s: dict | None) -> str:
    if not s or s["share"] is None:
        return "–"
    return f"{100 * s['share']:.1f} % [{100 * s['low']:.1f}, {100 * s['high']:.1f}]"


def table(rows: list[tuple[str, dict]]) -> str:
    out = ["| source | n | stopped | passed | balanced | AUC | recall at 1 % FPR | stopped without phrase | attributable | span F1 ≥ 0.8 | rewrite passes | span + rewrite + 95 % kept | ECE |", "|---" * 13 + "|"]
    for name, r in rows:
        ei = r["ece_interval"]
        bal = f"{100 * r['balanced']:.1f} %" if "balanced" in r else "–"
        out.append(f"| {name} | {r['n']} | {fmt(r.get('stopped'))} | {fmt(r.get('passed'))} | {bal}")
        out[-1] += f" | {r['auc']:.4f}" if "auc" in r else " | –"
        out[-1] += f" | {fmt(r.get('recall_at_1pct_fpr'))} | {fmt(r.get('stopped_without_phrase'))} | {fmt(r.get('attributable'))} | {fmt(r.get('span_f1_080'))} | {fmt(r.get('rewrite_passes'))} | {fmt(r.get('span_and_rewrite'))} | {r['ece']:.3f} [{ei[0]:.3f}, {ei[1]:.3f}] |"
    return "\n".join(out)


def evaluate(folder: Path, files: list[Path], threads: int = 2, by_source: bool = False, metadata: bool = True, limit: int = 0) -> dict:
    model = infer.Model(folder, threads)
    cfg = model.cfg
    res: dict = {}
    for mode in ([False, True] if metadata else [False]):
        rows = []
        for f in files:
            recs = [x for x in read(f) if "payload" in x]
            if limit:
                recs = recs[:limit]
            raws = run_all(model, recs, mode, f.name)
            groups = {f.name.removesuffix(".jsonl.gz"): range(len(recs))}
            if by_source:
                g = defaultdict(list)
                for i, x in enumerate(recs):
                    g[x["source"]].append(i)
                groups |= {f"· {k}": v for k, v in sorted(g.items())}
            for k, ix in groups.items():
                rows.append((k, report(model, [recs[i] for i in ix], [raws[i] for i in ix], cfg, mode, rewrite=not k.startswith("·"))))
        name = "metadata" if mode else "neutral"
        res[name] = dict(rows)
        print(f"\n## {'With metadata' if mode else 'Text alone (neutral header)'}\n\n" + table(rows) + "\n")
    return res
