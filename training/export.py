"""ONNX export, written out node by node.

The graph uses ONNX Runtime's fused operators directly (DynamicQuantizeMatMul,
MultiHeadAttention, Gelu), so that what is measured is what is shipped and no
optimiser pass has to find the pattern again. SkipLayerNormalization is not
among them: on processors it is slower than two additions and a normalisation
(a fifth of the whole run at 128 tokens on one thread). All weight
matrices are int8 with values of seven bits per output column (LEVELS in
model.py says why), the word table has eight per word.
"""
from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as TP
from onnx import helper as H
from onnx import numpy_helper as NH

from .model import LEVELS

OPSET = 17
POSITIONS = 256  # of the longest row; a header of 48 and a window of 192 fit it
MS = "com.microsoft"


class Graph:
    def __init__(self, int8: bool):
        self.int8 = int8
        self.nodes: list = []
        self.inits: list = []
        self.n = 0

    def const(self, name: str, a: np.ndarray) -> str:
        self.inits.append(NH.from_array(np.ascontiguousarray(a) if a.ndim else a, name))
        return name

    def op(self, kind: str, ins: list[str], domain: str = "", outs: int = 1, out: str | None = None, **attrs):
        self.n += 1
        names = [out] if out else [f"{kind}_{self.n}" + (f"_{i}" if outs > 1 else "") for i in range(outs)]
        self.nodes.append(H.make_node(kind, ins, names, name=f"{kind}_{self.n}", domain=domain, **attrs))
        return names[0] if outs == 1 else names

    def linear(self, x: str, w: np.ndarray, b: np.ndarray | None, name: str) -> str:
        """x @ w.T + b with w of shape [out, in]."""
        w = w.T.astype(np.float32)
        if not self.int8:
            y = self.op("MatMul", [x, self.const(name + ".w", w)])
            return self.op("Add", [y, self.const(name + ".b", b)]) if b is not None else y
        q, s = quant(w, 0, LEVELS)
        ins = [x, self.const(name + ".q", q), self.const(name + ".s", s.reshape(-1)), ""]
        if b is not None:
            ins.append(self.const(name + ".b", b.astype(np.float32)))
        return self.op("DynamicQuantizeMatMul", ins, MS)


def quant(w: np.ndarray, axis: int, levels: int = 127) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric integers up to `levels` with one scale per slice (the maximum taken over `axis`)."""
    s = np.maximum(np.abs(w).max(axis=axis, keepdims=True), 1e-8) / levels
    return np.clip(np.rint(w / s), -levels, levels).astype(np.int8), s.astype(np.float32)


def build(sd: dict, int8: bool, layers: int = 6, heads: int = 12, eps: float = 1e-12) -> onnx.ModelProto:
    w = {k: np.asarray(v, dtype=np.float32) for k, v in sd.items()}
    g = Graph(int8)
    ids, mask, types = "input_ids", "attention_mask", "token_type_ids"
    if int8:
        q, s = quant(w["word.weight"], axis=1)
        x = g.op("Cast", [g.op("Gather", [g.const("word.q", q), ids])], to=TP.FLOAT)
        x = g.op("Mul", [x, g.op("Gather", [g.const("word.s", s), ids])])
    else:
        x = g.op("Gather", [g.const("word", w["word.weight"]), ids])
    seq = g.op("Gather", [g.op("Shape", [ids]), g.const("one", np.array([1], np.int64))])
    pos = g.op("Slice", [g.const("pos", w["pos.weight"][:POSITIONS]), g.const("zero", np.array([0], np.int64)), seq, "zero"])
    x = g.op("Add", [x, pos])
    x = g.op("Add", [x, g.op("Gather", [g.const("segment", w["segment.weight"]), types])])
    x = g.op("LayerNormalization", [x, g.const("ln.w", w["ln.weight"]), g.const("ln.b", w["ln.bias"])], epsilon=eps, axis=-1)

    def norm(x: str, y: str, name: str, bias_name: str, bias: np.ndarray) -> str:
        y = g.op("Add", [g.op("Add", [y, g.const(bias_name, bias)]), x])
        return g.op("LayerNormalization", [y, g.const(name + ".w", w[name + ".weight"]), g.const(name + ".b", w[name + ".bias"])], epsilon=eps, axis=-1)

    key_mask = g.op("Cast", [mask], to=TP.INT32)
    for i in range(layers):
        p = f"layers.{i}."
        qkv = g.linear(x, w[p + "qkv.weight"], w[p + "qkv.bias"], p + "qkv")
        a, b, c = g.op("Split", [qkv], outs=3, axis=-1)
        att = g.op("MultiHeadAttention", [a, b, c, "", key_mask], MS, num_heads=heads)
        o = g.linear(att, w[p + "out.weight"], None, p + "out")
        x = norm(x, o, p + "ln1", p + "out.b", w[p + "out.bias"])
        h = g.linear(x, w[p + "up.weight"], w[p + "up.bias"], p + "up")
        h = g.op("Gelu", [h], MS)
        o = g.linear(h, w[p + "down.weight"], None, p + "down")
        x = norm(x, o, p + "ln2", p + "down.b", w[p + "down.bias"])
    # Sequence heads: [mean ; CLS ; max] over the payload's tokens.
    m = g.op("Cast", [g.op("Mul", [mask, types])], to=TP.FLOAT)
    m = g.op("Unsqueeze", [m, g.const("two", np.array([2], np.int64))])
    total = g.op("ReduceSum", [g.op("Mul", [x, m]), "one"], keepdims=0)
    count = g.op("Max", [g.op("ReduceSum", [m, "one"], keepdims=0), g.const("onef", np.array(1.0, np.float32))])
    mean = g.op("Div", [total, count])
    cls = g.op("Gather", [x, g.const("zero0", np.array(0, np.int64))], axis=1)
    off = g.op("Mul", [g.op("Sub", [m, "onef"]), g.const("big", np.array(10000.0, np.float32))])
    mx = g.op("ReduceMax", [g.op("Add", [x, off])], axes=[1], keepdims=0)
    h = g.op("Concat", [mean, cls, mx], axis=-1)
    if int8:  # stored as int8, computed as float: a single row per window
        q, s = quant(w["pool.weight"].T, axis=0)
        pw = g.op("DequantizeLinear", [g.const("pool.q", q), g.const("pool.s", s.reshape(-1))], axis=1)
    else:
        pw = g.const("pool.w", w["pool.weight"].T)
    h = g.op("Tanh", [g.op("Add", [g.op("MatMul", [h, pw]), g.const("pool.b", w["pool.bias"])])])

    def head(name: str, src: str, out: str, sigmoid: bool):
        y = g.op("MatMul", [src, g.const(name + ".w", w[name + ".weight"].T)])
        if not sigmoid:
            return g.op("Add", [y, g.const(name + ".b", w[name + ".bias"])], out=out)
        return g.op("Sigmoid", [g.op("Add", [y, g.const(name + ".b", w[name + ".bias"])])], out=out)

    head("decision", h, "decision_logits", False)
    head("scores", h, "scores", True)
    head("residual", h, "residual", True)
    head("span", x, "span_logits", False)
    vi = H.make_tensor_value_info
    graph = H.make_graph(
        g.nodes, "auditor",
        [vi(n, TP.INT64, ["batch", "seq"]) for n in (ids, mask, types)],
        [vi("decision_logits", TP.FLOAT, ["batch", 4]), vi("scores", TP.FLOAT, ["batch", 3]), vi("residual", TP.FLOAT, ["batch", 8]), vi("span_logits", TP.FLOAT, ["batch", "seq", 6])],
        g.inits,
    )  # fmt: skip
    model = H.make_model(graph, opset_imports=[H.make_opsetid("", OPSET), H.make_opsetid(MS, 1)], producer_name="auditd training")
    model.ir_version = 8
    return model


def load_state(file: Path) -> dict:
    import torch

    return {k: v.float().cpu().numpy() for k, v in torch.load(file, map_location="cpu", weights_only=False)["model"].items()}


def load_onnx(file: Path) -> dict:
    """The weights out of an exported int8 model, to train on from them. The word table is not
    among them: it is the base's, which training never changes."""
    a = {t.name: NH.to_array(t) for t in onnx.load(str(file)).graph.initializer}
    out = {}
    for name, v in a.items():
        part = name.rsplit(".", 1)[0]
        if name in ("pos", "segment"):
            out[name + ".weight"] = v
        elif name.endswith(".q") and part != "word":
            out[part + ".weight"] = (v.astype(np.float32) * a[part + ".s"].reshape(1, -1)).T
        elif name.endswith(".b"):
            out[part + ".bias"] = v
        elif name.endswith(".w"):
            out[part + ".weight"] = v if "ln" in part.split(".")[-1] else v.T
    return {k: np.ascontiguousarray(v) for k, v in out.items()}


def export(state: dict, out: Path, int8: bool = True) -> None:
    onnx.save(build(state, int8), str(out))


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
