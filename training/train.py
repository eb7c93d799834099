"""Training: bf16 where the processor has it (or on a GPU where there is one), tied to a wall-clock budget."""
from __future__ import annotations

import json
import math
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tqdm import tqdm

from .export import load_onnx
from .model import Auditor, base_folder, load_base
from .record import CLS, SEP

SPAN_WEIGHT = torch.tensor([0.6, 2.0, 1.6, 1.6, 1.0, 1.2])


def batches(data: dict, tokens: int, rng: random.Random) -> list[list[int]]:
    """Batches of about equal length, in random order."""
    n = [len(h) + len(x) + 3 for h, x in zip(data["head"], data["ids"])]
    order = sorted(range(len(n)), key=lambda i: n[i] + rng.random() * 6)
    out, cur, longest = [], [], 0
    for i in order:
        longest = max(longest, n[i])
        if cur and longest * (len(cur) + 1) > tokens:
            out.append(cur)
            cur, longest = [], n[i]
        cur.append(i)
    if cur:
        out.append(cur)
    rng.shuffle(out)
    return out


def collate(data: dict, idx: list[int], noise: float, rng: np.random.Generator):
    n = max(len(data["head"][i]) + len(data["ids"][i]) + 3 for i in idx)
    ids = np.zeros((len(idx), n), np.int64)
    mask = np.zeros_like(ids)
    types = np.zeros_like(ids)
    span = np.full_like(ids, -100)
    for k, i in enumerate(idx):
        h, x, s = data["head"][i], data["ids"][i], data["span"][i]
        if noise:  # a few payload tokens become [UNK]
            x = np.where(rng.random(len(x)) < noise, 100, x)
        a = len(h) + 2
        e = a + len(x)
        ids[k, 0] = CLS
        ids[k, 1 : a - 1] = h
        ids[k, a - 1] = SEP
        ids[k, a:e] = x
        ids[k, e] = SEP
        mask[k, : e + 1] = 1
        types[k, a : e + 1] = 1
        span[k, a:e] = np.where(s < 0, -100, s)
    t = torch.from_numpy
    return (
        t(ids), t(mask), t(types), t(span),
        torch.tensor([data["decision"][i] for i in idx]),
        torch.tensor([data["scores"][i] for i in idx]),
        torch.tensor([data["residual"][i] for i in idx]),
    )  # fmt: skip


def loss_of(out, span, decision, scores, residual):
    d, s, r, t = (x.float() for x in out)
    ld = F.cross_entropy(d, decision, label_smoothing=0.02)
    ls = F.binary_cross_entropy_with_logits(s, scores)
    lr = F.binary_cross_entropy_with_logits(r, residual)
    lt = F.cross_entropy(t.flatten(0, 1), span.flatten(), weight=SPAN_WEIGHT.to(t.device), ignore_index=-100)
    if not torch.isfinite(lt):
        lt = d.sum() * 0.0
    return ld + 0.15 * ls + 0.2 * lr + 0.7 * lt, ld, lt


def groups(model: Auditor, lr: float, decay: float = 0.88):
    """Layer-wise learning rates; the word table stays as it is (it keeps rare words usable)."""
    model.word.weight.requires_grad_(False)
    n = len(model.layers)
    out = []

    def add(params, scale):
        params = [p for p in params if p.requires_grad]
        out.append({"params": [p for p in params if p.dim() > 1], "lr": lr * scale, "peak": lr * scale, "weight_decay": 0.01})
        out.append({"params": [p for p in params if p.dim() <= 1], "lr": lr * scale, "peak": lr * scale, "weight_decay": 0.0})

    add([*model.pos.parameters(), *model.segment.parameters(), *model.ln.parameters()], decay**n)
    for i, l in enumerate(model.layers):
        add(l.parameters(), decay ** (n - 1 - i))
    add([*model.pool.parameters(), *model.decision.parameters(), *model.scores.parameters(), *model.residual.parameters(), *model.span.parameters()], 4.0)
    return [g for g in out if g["params"]]


def start(model: Auditor, file: Path) -> None:
    """Weights of an earlier run: its model.pt, or the model.onnx that it exported."""
    if file.suffix != ".onnx":
        model.load_state_dict(torch.load(file, map_location="cpu")["model"])
        return
    state = {k: torch.from_numpy(v.copy()) for k, v in load_onnx(file).items()}
    pos = state.pop("pos.weight")  # the export keeps the positions that windows can have
    with torch.no_grad():
        model.pos.weight[: len(pos)].copy_(pos)
    missing, unknown = model.load_state_dict(state, strict=False)
    if unknown or set(missing) != {"word.weight", "pos.weight"}:
        raise ValueError(f"{file} is not a model of this shape: missing {missing}, unknown {unknown}")


def train(data: dict, out: Path, minutes: float, lr: float = 1.5e-4, tokens: int = 2560, seed: int = 7, init: Path | None = None, freeze: int = 0, threads: int = 2, resume: bool = True, max_steps: int | None = None) -> Auditor:
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    rng, nrng = random.Random(seed), np.random.default_rng(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Auditor(dropout=0.0).to(device)  # the layers' dropout costs a tenth of the step; one pass needs none
    load_base(model, base_folder())
    if init:
        start(model, init)
    for part in [model.pos, model.segment, model.ln, *model.layers[:freeze]] if freeze else []:
        part.requires_grad_(False)
    # Processors without bf16 instructions emulate them, ten times slower than float.
    cpu = Path("/proc/cpuinfo")
    fast = device == "cuda" or cpu.exists() and "avx512" in cpu.read_text()
    opt = torch.optim.AdamW(groups(model, lr), lr=lr, betas=(0.9, 0.98), fused=True)
    state = {"step": 0, "elapsed": 0.0, "tokens": 0, "epoch": 0, "pos": 0}
    ck = out / "checkpoint.pt"
    if resume and ck.exists():
        c = torch.load(ck, map_location=device, weights_only=False)
        model.load_state_dict(c["model"])
        opt.load_state_dict(c["opt"])
        state = c["state"]

    def save():
        tmp = out / "checkpoint.tmp"
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "state": state}, tmp)
        tmp.replace(ck)

    model.train()
    budget = minutes * 60
    log = (out / "log.jsonl").open("a")
    bar = tqdm(total=100.0, desc="train", bar_format="{l_bar}{bar}| {elapsed}<{remaining} {postfix}", mininterval=5)
    avg: dict[str, float] = {}
    last_save = t0 = time.time()
    base = state["elapsed"]
    done = False
    while not done:
        order = batches(data, tokens, random.Random(seed * 1000 + state["epoch"]))
        for b in range(state["pos"], len(order)):
            state["elapsed"] = base + time.time() - t0
            progress = state["step"] / max_steps if max_steps else state["elapsed"] / budget
            if progress >= 1 or (max_steps and state["elapsed"] > budget):
                done = True
                break
            f = min(1.0, progress / 0.04 + 0.02) * max(0.0, (1 - progress) / 0.96 if progress > 0.04 else 1.0)
            for g in opt.param_groups:
                g["lr"] = g["peak"] * f
            ids, mask, types, span, *targets = (x.to(device) for x in collate(data, order[b], 0.01, nrng))
            with torch.autocast(device, torch.bfloat16, enabled=fast):
                res = model(ids, mask, types)
            loss, ld, lt = loss_of(res, span, *targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_([p for g in opt.param_groups for p in g["params"]], 1.0)
            opt.step()
            opt.zero_grad()
            state["step"] += 1
            state["pos"] = b + 1
            state["tokens"] += ids.numel()
            acc = ((res[0].float().argmax(-1) > 0) == (targets[0] > 0)).float().mean().item()
            for k, v in (("loss", loss.item()), ("dec", ld.item()), ("span", lt.item()), ("acc", acc)):
                avg[k] = v if k not in avg or not math.isfinite(avg[k]) else 0.98 * avg[k] + 0.02 * v
            bar.n = round(100 * progress, 1)
            if state["step"] % 20 == 0:
                tps = state["tokens"] / max(state["elapsed"], 1)
                bar.set_postfix_str(f"step {state['step']} ep {state['epoch']} {state['tokens'] / 1e6:.2f}M tok {tps:.0f}/s " + " ".join(f"{k} {v:.3f}" for k, v in avg.items()))
                log.write(json.dumps({**state, **avg}) + "\n")
                log.flush()
            if time.time() - last_save > 240:
                save()
                last_save = time.time()
        else:
            state["epoch"] += 1
            state["pos"] = 0
    bar.close()
    save()
    torch.save({"model": model.state_dict(), "state": state}, out / "model.pt")
    return model.eval()
