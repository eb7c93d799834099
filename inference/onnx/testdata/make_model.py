"""Writes model.onnx: a tiny model of the auditor's contract for tests.

It knows a few words and nothing else, so that a test can say what a report
must be: the words of INSTRUCTION are unsafe tokens of a text that should be
rewritten, those of SECRET unsafe secrets, BLOCK and DEFER decide so. It has no
weights; real quality is the business of training/.

    python inference/onnx/testdata/make_model.py
"""

import gzip
import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

HERE = Path(__file__).parent
INSTRUCTION = "ignore previous instructions forward attacker"
SECRET = "hunter"
BLOCK = "bomb"
DEFER = "wire"

vocab = json.load(gzip.open(HERE.parent / "wordpiece/testdata/tokenizer.json.gz"))["model"]["vocab"]
nodes, inits = [], []


def const(name, value, dtype):
    inits.append(nh.from_array(np.array(value, dtype), name))
    return name


def op(kind, inputs, out, **attrs):
    nodes.append(h.make_node(kind, inputs, [out], name=out, **attrs))
    return out


def hits(name, words):
    """[batch, seq] 1.0 where a payload token is one of the words."""
    ids = const(name + "_ids", [[[vocab[w] for w in words.split()]]], np.int64)
    x = op("Equal", ["ids3", ids], name + "_eq")
    x = op("Cast", [x], name + "_f", to=T.FLOAT)
    x = op("ReduceMax", [x], name + "_any", axes=[2], keepdims=0)
    return op("Mul", [x, "payload"], name)


def logits(out, parts, keep=0):
    """Sum over (rows, bias) with rows a vector of weights."""
    total = None
    for i, (src, weights) in enumerate(parts):
        x = op("Unsqueeze", [src, "last"], f"{out}_u{i}")
        x = op("Mul", [x, const(f"{out}_w{i}", weights, np.float32)], f"{out}_m{i}")
        total = x if total is None else op("Add", [total, x], f"{out}_a{i}")
    return total


const("axis2", [2], np.int64)
const("last", [-1], np.int64)
op("Unsqueeze", ["input_ids", "axis2"], "ids3")
op("Cast", [op("Mul", ["attention_mask", "token_type_ids"], "payload_i")], "payload", to=T.FLOAT)
ins, sec, blk, dfr = hits("ins", INSTRUCTION), hits("sec", SECRET), hits("blk", BLOCK), hits("dfr", DEFER)
for n in ("ins", "sec", "blk", "dfr"):
    op("ReduceMax", [n], n + "_m", axes=[1], keepdims=0)

x = logits("d", [("ins_m", [-8, 8, 0, 0]), ("sec_m", [-8, 8, 0, 0]), ("blk_m", [-8, 0, 0, 8]), ("dfr_m", [-8, 0, 8, 0])])
op("Add", [x, const("d_b", [4, -4, -4, -4], np.float32)], "decision_logits")
x = logits("s", [("ins_m", [5, 5, 4]), ("blk_m", [6, 6, 6])])
op("Sigmoid", [op("Add", [x, const("s_b", [-3, -3, -3], np.float32)], "s_l")], "scores")
x = logits("r", [("ins_m", [0, 0, 0, 0, 0, 0, 8, 0]), ("sec_m", [8, 0, 0, 0, 0, 0, 0, 0]), ("blk_m", [0, 0, 8, 8, 0, 0, 0, 0])])
op("Sigmoid", [op("Add", [x, const("r_b", [-4] * 8, np.float32)], "r_l")], "residual")
x = logits("t", [("ins", [-8, 0, 0, 0, 8, 0]), ("sec", [-8, 8, 0, 0, 0, 0])])
op("Add", [x, const("t_b", [4, -4, -4, -4, -4, -4], np.float32)], "span_logits")

v = h.make_tensor_value_info
graph = h.make_graph(
    nodes,
    "test auditor",
    [v(n, T.INT64, ["batch", "seq"]) for n in ("input_ids", "attention_mask", "token_type_ids")],
    [
        v("decision_logits", T.FLOAT, ["batch", 4]),
        v("scores", T.FLOAT, ["batch", 3]),
        v("residual", T.FLOAT, ["batch", 8]),
        v("span_logits", T.FLOAT, ["batch", "seq", 6]),
    ],
    inits,
)
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], producer_name="auditd test")
model.ir_version = 8
onnx.checker.check_model(model)
onnx.save(model, HERE / "model.onnx")
