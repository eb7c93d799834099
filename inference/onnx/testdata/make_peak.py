"""Writes peak.onnx: one large int8 matrix product, the yardstick for BenchmarkPeak.

The constant matrix is made by the graph, so that the file stays tiny; ONNX
Runtime folds and packs it when the session is made.

    python inference/onnx/testdata/make_peak.py
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

N = 2048
graph = h.make_graph(
    [
        h.make_node("ConstantOfShape", ["shape"], ["b"], value=nh.from_array(np.array([3], np.int8))),
        h.make_node("MatMulInteger", ["a", "b"], ["c"]),
    ],
    "peak",
    [h.make_tensor_value_info("a", T.UINT8, ["rows", N])],
    [h.make_tensor_value_info("c", T.INT32, ["rows", N])],
    [nh.from_array(np.array([N, N], np.int64), "shape")],
)
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], producer_name="auditd test")
model.ir_version = 8
onnx.save(model, Path(__file__).parent / "peak.onnx")
