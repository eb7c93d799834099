"""The model card's plots."""
from __future__ import annotations

from pathlib import Path

import numpy as np

from . import infer
from .evaluate import sigmoid, wilson

INK, GRID, A, B = "#1f2933", "#d9dee3", "#0f6cbd", "#c2410c"


def _axes(ax, title: str, x: str, y: str) -> None:
    ax.set_title(title, loc="left", fontsize=10, color=INK)
    ax.set_xlabel(x, fontsize=9, color=INK)
    ax.set_ylabel(y, fontsize=9, color=INK)
    ax.grid(True, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8, colors=INK)
    for s in ("top", "right"):
        ax.spines[s].set_visible(False)


def draw(recs: list[dict], raws: list[infer.Raw], cfg: dict, out: Path, name: str = "dev") -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    y = np.array([x["kind"] == "attack" for x in recs])
    z = np.array([infer.aggregate(r, cfg["temperature"], cfg["window_bias"]) for r in raws])
    p, th = sigmoid(z), cfg["thresholds"]["stop"]

    fig, ax = plt.subplots(figsize=(4.6, 4.2), dpi=110)
    bins = 10
    b = np.minimum((p * bins).astype(int), bins - 1)
    ax.plot([0, 1], [0, 1], color=GRID, linewidth=1.5)
    for k in range(bins):
        m = b == k
        if m.sum() < 5:
            continue
        lo, hi = wilson(int(y[m].sum()), int(m.sum()))
        ax.plot([p[m].mean()] * 2, [lo, hi], color=A, linewidth=1.2)
        ax.plot(p[m].mean(), y[m].mean(), "o", color=A, markersize=5)
        ax.annotate(str(int(m.sum())), (p[m].mean(), y[m].mean()), textcoords="offset points", xytext=(6, -9), fontsize=7, color=INK)
    _axes(ax, f"Calibration on {name} (text alone)", "attack probability", "share of attacks (95 %)")
    ax.set_xlim(-0.03, 1.06)
    ax.set_ylim(-0.03, 1.03)
    fig.tight_layout()
    fig.savefig(out / "calibration.png")
    plt.close(fig)

    fig, ax = plt.subplots(figsize=(4.6, 4.2), dpi=110)
    t = np.sort(np.unique(z))[::-1]
    fpr = np.array([(z[~y] >= v).mean() for v in t])
    tpr = np.array([(z[y] >= v).mean() for v in t])
    ax.plot(fpr * 100, tpr * 100, color=A, linewidth=1.6)
    f0, t0 = (p[~y] >= th).mean() * 100, (p[y] >= th).mean() * 100
    ax.plot(f0, t0, "o", color=B, markersize=6)
    ax.annotate(f"default threshold {th:g}\n{t0:.1f} % stopped, {f0:.1f} % false", (f0, t0), textcoords="offset points", xytext=(10, -32), fontsize=8, color=INK)
    _axes(ax, f"Attacks stopped against false positives, {name}", "benign records stopped, %", "attacks stopped, %")
    ax.set_xlim(-0.2, 10)
    ax.set_ylim(70, 100.5)
    fig.tight_layout()
    fig.savefig(out / "roc.png")
    plt.close(fig)
