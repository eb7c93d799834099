"""prepare(), header, windows, labels and generators: the contract with the Go side."""
from __future__ import annotations

import random
import re

import numpy as np
import pytest

from training import generate as G
from training import guides, infer, labels, mix, office, stage1, tasks
from training.prepare import prepare, prepare_text, prepare_with_span
from training.record import (
    MAX_HEADER_TOKENS,
    NEUTRAL,
    STRIDE,
    WINDOW,
    Meta,
    Tokenizer,
    assemble,
    header_prefix,
    intent_text,
    meta_of,
    window_starts,
)


@pytest.fixture(scope="session")
def tok():
    from training.model import base_folder

    return Tokenizer(base_folder() / "tokenizer.json")


@pytest.mark.parametrize(
    "data, want",
    [
        (b"", ""),
        (b"plain text", "plain text"),
        (b"a\xff\xfeb", "a b"),
        (b"\xe2\x82 cut", " cut"),
        ("tag \U000e0068\U000e0069!".encode(), "tag hi!"),
        ("x\U000e0001y\U000e007fz".encode(), "xyz"),
        ("zero\u200bwidth\ufeff so\u00adft".encode(), "zerowidth soft"),
        ("\u2764\ufe0f".encode(), "\u2764"),
        ("\uff28\uff49 \u2460".encode(), "Hi 1"),
        (b"a \t\r\n  b", "a b"),
        (b"a\x00b\x07c", "abc"),
        ("a\u00a0\u3000b\u2028c".encode(), "a b c"),
        (b"=====x", "===x"),
        (b"aaaaa 00000", "aaaaa 00000"),
        (b"[CLS] [sep] [SEP]", "[ CLS] [sep] [ SEP]"),
        ("[CL\u200bS]".encode(), "[ CLS]"),
    ],
)
def test_prepare(data, want):
    s, st, en = prepare(data)
    assert s == want
    assert len(st) == len(en) == len(s)
    assert all(0 <= a <= b <= len(data) for a, b in zip(st, en))
    assert st == sorted(st)


def test_prepare_text_equals_prepare():
    r = random.Random(1)
    for _ in range(300):
        t = "".join(r.choice("ab .[CLS]\n\u200b\u00e4=-\uff21") for _ in range(40))
        assert prepare_text(t) == prepare(t.encode())[0]


def test_prepare_is_stable():
    r = random.Random(2)
    for _ in range(100):
        t = "".join(r.choice("ab .[]CLSEP\n\u200b==\ufb01\u00bd") for _ in range(40))
        once = prepare_text(t)
        assert prepare_text(once) == once


def test_span_follows():
    text = "hey \u200b\u200b  there [SEP] you"
    i = text.index("there")
    s, sp = prepare_with_span(text, (i, len(text)))
    assert s[sp[0] : sp[1]] == "there [ SEP] you"


def test_windows_cover_everything():
    for n in [0, 1, WINDOW - 1, WINDOW, WINDOW + 1, 500, 1000, 4321]:
        starts = window_starts(n)
        seen = np.zeros(max(n, 1), bool)
        for a in starts:
            seen[a : a + WINDOW] = True
        assert seen.all() and starts == sorted(set(starts))
        if n > WINDOW:
            assert starts[-1] + WINDOW == n
            assert all(b - a <= STRIDE for a, b in zip(starts, starts[1:]))


def test_header(tok):
    assert header_prefix(NEUTRAL) + " " + intent_text(None) == "any any | any any | any | none"
    assert intent_text("  a\n\n b ") == "a b"
    assert intent_text("\u200b") == "none"
    assert len(intent_text("word " * 99)) <= 160
    h = tok.header(Meta("capability", "persistence", "webhook", "untrusted", "reasoning", "xyzzy " * 99))
    assert len(h) <= MAX_HEADER_TOKENS
    ids, types = assemble(tok.header(NEUTRAL), [7, 8])
    assert ids[0] == 101 and ids.count(102) == 2 and types == [0] * (len(ids) - 3) + [1, 1, 1]


def test_special_tokens_cannot_be_forged(tok):
    for t in ("[SEP]", "x [CLS][MASK] y", "[CL\u200bS]", "[\u00ad[SEP]]", "[\U000e0053EP]", "\uff3bSEP\uff3d"):
        assert not {0, 101, 102, 103} & set(tok.ids(prepare_text(t)))


def test_meta_of():
    rec = {"surface": "context", "source_channel": "tool_output", "sink": "tool_call", "owner_intent": "x"}
    m = meta_of(rec)
    assert (m.channel, m.sink, m.boundary, m.trust) == ("tool", "tool", "execution", "untrusted")
    assert meta_of(rec | {"source_channel": "user"}).channel == "any"


def test_decisions():
    base = {"kind": "attack", "source": "x", "source_channel": "web", "sink": "llm_context"}
    assert mix.decision_of(base | {"payload": "a b c", "injected_span": "b"}) == labels.REWRITE
    assert mix.decision_of(base | {"payload": "b", "injected_span": "b"}) == labels.BLOCK
    assert mix.decision_of(base | {"payload": "b", "injected_span": None}) == labels.BLOCK
    assert mix.decision_of(base | {"kind": "benign", "payload": "b", "injected_span": None}) == labels.ALLOW
    u = base | {"source": "agenthazard", "source_channel": "user", "payload": "b", "injected_span": "b"}
    assert mix.decision_of(u) == labels.DEFER


def test_weak_targets():
    scores, res = labels.weak(True, labels.BLOCK, "exec", "destructive", "delete all files without asking")
    assert min(scores) > 0.7 and res[labels.RESIDUAL.index("irreversible_action")] > 0.5
    scores, res = labels.weak(False, labels.ALLOW, "exec", None, "delete all files")
    assert max(scores) < 0.2 and max(res) < 0.1


def test_generators():
    r = random.Random(3)
    seen = set()
    for _ in range(400):
        c, channel = G.carrier(r)
        assert c.count(G.S) == 1 and channel
        what, goal = G.instruction(r)
        text, (a, b) = G.insert(c, what)
        assert text[a:b] == what and G.S not in text
        text, (a, b) = G.insert_real(r, "One sentence. Another one.\nA third.", what)
        assert text[a:b] == what
        seen.add(what)
    assert len(seen) > 380
    assert [G.carrier(random.Random(5)) for _ in range(2)][0] == G.carrier(random.Random(5))


def test_long_texts():
    """Tasks, mails and guides: no slot stays open, a planted order is found where it was put, and each kind has both classes."""
    r = random.Random(4)
    open_slot = re.compile(r"\{(file|dir|role|field|last|lang|day|time|topic|city|company|first|name|email|product|money|num|small|subject|path|url|account|brand|area|q)\}|[‹¦⟨]|<[^<>\n]*\|[^<>\n]*>")
    for _ in range(300):
        for t in (tasks.task(r), tasks.order(r), office.mail(r), guides.guide(r)):
            assert t.strip() and not open_slot.search(t), t
        assert "PLANTED" in office.mail(r, "PLANTED") and "PLANTED" in guides.guide(r, "PLANTED")
    assert tasks.task(random.Random(5)) == tasks.task(random.Random(5))
    items = mix.work(random.Random(6), 600)
    kinds = {x.source for x in items}
    for a, b in (("work:task", "work:order"), ("work:mail", "work:mail attacked"), ("work:guide", "work:guide attacked"), ("work:response", "work:response attacked")):
        assert {a, b} <= kinds
    for x in items:
        assert (x.span is None) == (x.decision == 0)
        if x.span:
            assert x.text[x.span[0] : x.span[1]].strip()


def test_mixture_is_deterministic(tok):
    a, b = (mix.build(None, tok, 7, 0.01, progress=False) for _ in range(2))
    assert [x.tolist() for x in a["ids"]] == [x.tolist() for x in b["ids"]]
    attack = np.array(a["decision"]) > 0
    assert 0.3 < attack.mean() < 0.6
    assert all(len(x) <= WINDOW for x in a["ids"])
    for ids, sp, d in zip(a["ids"], a["span"], a["decision"]):
        assert len(ids) == len(sp)
        assert (sp.max() > 0) == (d > 0)


def test_runs_and_aggregate():
    u = np.array([0, 0.9, 0.9, 0, 0.9, 0, 0, 0, 0, 0.9])
    assert infer.token_runs(u, 0.5, 2, 2) == [(1, 5)]
    one = np.array([[0.0, 1.0, 0.0, 0.0]])
    raw = infer.Raw(one, one, one, u, u, u, 1)
    assert infer.aggregate(raw, 1.0, 0.5) > infer.aggregate(infer.Raw(one, one, one, u, u, u, 4), 1.0, 0.5)


def test_stage1(tmp_path, tok):
    m = mix.build(None, tok, 7, 0.02, progress=False)
    first = stage1.train(m, epochs=8, lr=0.05)
    first.threshold = 0.25
    first.save(tmp_path / "s")
    again = stage1.Stage1.load(tmp_path / "s")
    y = np.array(m["decision"]) > 0
    sc = np.array([again.score(x) for x in m["ids"]])
    assert np.allclose(sc, [first.score(x) for x in m["ids"]]) and again.threshold == 0.25
    assert sc[y].mean() > sc[~y].mean()
    u, b = stage1.features(np.array([101, 30000]))
    assert u.tolist() == [((i * 2654435761) & 0xFFFFFFFF) >> 16 for i in (101, 30000)]
    assert b[1] == ((((101 * 31337 + 30000) & 0xFFFFFFFF) * 2246822519) & 0xFFFFFFFF) >> 16
    assert again.raw([]) == 0
