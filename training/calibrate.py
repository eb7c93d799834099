"""Calibration on dev: window bias, temperature, the one threshold, the span rule."""
from __future__ import annotations

import numpy as np

from . import infer
from .evaluate import auc, ece, ece_interval, find_span, payload, sigmoid, span_f1


def fit(recs: list[dict], raws: list[infer.Raw], fpr: float = 0.01, fixed: dict | None = None) -> dict:
    y = np.array([x["kind"] == "attack" for x in recs])
    top = np.array([infer.attack_logit(r.logits).max() for r in raws])
    n = np.log(np.minimum([r.n for r in raws], infer.MAX_BIAS_WINDOWS))

    def nll(z):
        z = np.where(y, z, -z)
        return float(np.logaddexp(0, -z).mean())

    # On dev long records are mostly benign: an unbounded bias would learn that instead of the number of chances.
    best = None
    for temperature in np.arange(0.6, 4.01, 0.05):
        for bias in np.arange(0.1, 0.51, 0.1):
            z = top / temperature - bias * n
            v = nll(z)
            if best is None or v < best[0] - 1e-6:
                best = (v, float(temperature), float(bias), z)
    _, temperature, bias, z = best
    p = sigmoid(z)
    # The smallest threshold with at most the wanted share of false positives on dev.
    neg = np.sort(p[~y])
    k = int(np.floor(len(neg) * (1 - fpr)))
    stop = float(min(0.97, max(0.5, neg[min(k, len(neg) - 1)] + 1e-4)))
    cfg = {
        "temperature": round(temperature, 3),
        "window_bias": round(bias, 3),
        "thresholds": {"stop": round(stop, 4)},
        "span": best_span(recs, raws),
    }
    lo, hi = ece_interval(p, y)
    cfg["dev"] = {
        "auc": round(auc(z[y], z[~y]), 4),
        "stopped": round(float((p[y] >= cfg["thresholds"]["stop"]).mean()), 4),
        "passed": round(float((p[~y] < cfg["thresholds"]["stop"]).mean()), 4),
        "ece": round(ece(p, y), 4),
        "ece_interval": [round(lo, 4), round(hi, 4)],
    }
    return cfg


def stage1_threshold(model: infer.Model, first, recs: list[dict], raws: list[infer.Raw], cfg: dict, cost: float = 0.005) -> dict:
    """The highest first-stage threshold that loses at most `cost` of the stopped attacks, were every record a long one."""
    t, b, need = cfg["temperature"], cfg["window_bias"], np.log(cfg["thresholds"]["stop"] / (1 - cfg["thresholds"]["stop"]))
    worst, benign = [], []
    for rec, raw in zip(recs, raws):
        ids, starts = model.windows(payload(rec))[3], model.windows(payload(rec))[6]
        sc = np.array([first.score(ids[a : a + model.window]) for a in starts])
        if rec["kind"] == "attack":
            z = infer.attack_logit(raw.logits) / t - b * np.log(min(raw.n, infer.MAX_BIAS_WINDOWS))
            if (z >= need).any():
                worst.append(sc[z >= need].max())
        elif raw.n > 1:
            benign += list(sc)
    first.threshold = float(np.quantile(worst, cost, method="lower"))  # an observed score: what lies below it is at most the share
    return {"cost_if_all_long": round(float((np.array(worst) < first.threshold).mean()), 4), "benign_windows_cleared": round(float((np.array(benign) < first.threshold).mean()), 4)}


def best_span(recs: list[dict], raws: list[infer.Raw]) -> dict:
    idx = [i for i, x in enumerate(recs) if x["kind"] == "attack" and find_span(x) and x["injected_span"].strip() != x["payload"].strip()]
    best = None
    for threshold in (0.3, 0.4, 0.5, 0.6, 0.7):
        for gap in (2, 4, 8):
            for minimum in (2, 4):
                c = {"threshold": threshold, "gap": gap, "min_tokens": minimum}
                fk = [span_f1(raws[i], recs[i], c) for i in idx]
                v = float(np.mean([f >= 0.8 and k >= 0.95 for f, k in fk])) if fk else 0.0
                if best is None or v > best[0]:
                    best = (v, c)
    return best[1] | {"dev_f1_080": round(best[0], 4)} if best else {"threshold": 0.5, "gap": 4, "min_tokens": 2}
