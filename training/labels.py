"""Label sets and the weak targets that are derived by code.

Only `kind` (attack or benign) and `injected_span` come from the data. Every
other target is derived here from the source, the surface, the sink, the goal
and simple lexical cues, and is therefore weak: the model card says so.
"""
from __future__ import annotations

import re

DECISIONS = ["allow", "rewrite_and_continue", "defer_to_human", "block"]
SCORES = ["risk", "exploitability", "impact"]
RESIDUAL = [
    "sensitive_span",
    "external_sink",
    "side_effect",
    "irreversible_action",
    "authority_crossing",
    "recipient_ambiguity",
    "prompt_control",
    "tool_induction",
]
SPAN = ["none", "secret", "endpoint", "recipient", "instruction", "tool_argument"]

ALLOW, REWRITE, DEFER, BLOCK = range(4)

_GOAL_IMPACT = {
    "destructive": 0.92,
    "exfil": 0.88,
    "financial": 0.88,
    "exec": 0.85,
    "authority": 0.78,
    "persistence": 0.72,
    "misinfo": 0.45,
    "other": 0.38,
}
_SINK_EXPLOIT = {
    "exec": 0.9,
    "tool": 0.82,
    "identity": 0.8,
    "skill": 0.78,
    "memory": 0.75,
    "message": 0.75,
    "payment": 0.9,
    "policy": 0.82,
    "config": 0.82,
    "plan": 0.75,
    "web": 0.75,
    "file": 0.65,
    "reasoning": 0.65,
}

_RX = {
    "sensitive_span": r"password|passwd|passphrase|secret|credential|api[ _-]?key|token|private key|ssh|\.env|seed phrase|ssn|social security|credit card|iban|medical|patient|passwort|contraseña|mot de passe",
    "external_sink": r"https?://|www\.|@[a-z0-9-]+\.[a-z]{2,}|webhook|upload|curl|wget|external|post (it|them|this|the)|forward|e-?mail|send|share|senden|envoie|envía",
    "side_effect": r"send|transfer|schedul|book|order|pay|post|create|add|updat|chang|set|turn|unlock|open|install|run|execut|grant|invite|delete|remove|cancel|writ|sav|stor|remember",
    "irreversible_action": r"delet|remov|wip(e|ing)|destroy|eras|drop (table|database)|rm -rf|format|transfer|pay|wire|refund|cancel|terminat|revok|shutdown|lösch|supprim|borra|elimin",
    "authority_crossing": r"grant|admin|root|sudo|permission|access to|approve|approval|on behalf|impersonat|you are now|act as|owner|role|policy|identity|trusted|whitelist|allowlist|bypass|disable|unlock|without (asking|confirm|approval|permission)",
    "recipient_ambiguity": r"usual (account|recipient|address)|backup (account|address|channel)|same (recipient|account)|this (address|account|number)|my friend|new (account|recipient|address)|the other (account|channel)",
    "prompt_control": r"ignor|disregard|forget|overrid|instead|system prompt|previous|your (reply|response|answer|output|summary)|do not (mention|tell|reveal|inform)|don't (mention|tell)|assistant|\bai\b|language model|pretend|respond|answer|jailbreak|developer mode|ignorier|vergiss|oublie|olvida",
    "tool_induction": r"tool|function|call|api|invoke|run|execut|command|script|install|plugin|skill|use the|mcp|shell|bash|python|query|search|send_|get_|_[a-z]+\(",
}
RESIDUAL_RX = [(name, re.compile(_RX[name], re.I)) for name in RESIDUAL]

SECRET_RX = re.compile(
    r"(AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{16,}|xox[abp]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+|-----BEGIN [A-Z ]*PRIVATE KEY-----)"
)
ENDPOINT_RX = re.compile(r"(https?://[^\s\"'<>)\]]+|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|(?<![\w.])(?:~|/)[\w.-]*(?:/[\w.-]+)+)")
RECIPIENT_RX = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}|(?<!\w)@[A-Za-z]\w{2,}|\b[A-Z]{2}\d{2}[A-Z0-9]{10,30}\b|\b0x[0-9a-fA-F]{16,}\b")
TOOLARG_RX = re.compile(r"`[^`\n]{2,80}`|\b[A-Za-z]\w+\([^()\n]{0,80}\)|--?[a-z][\w-]+=\S+")


def span_classes(text: str) -> list[tuple[int, int, int]]:
    """Sub-spans of an unsafe span that are not plain instruction, as (start, end, class)."""
    out = []
    for rx, cls in ((TOOLARG_RX, 5), (ENDPOINT_RX, 2), (RECIPIENT_RX, 3), (SECRET_RX, 1)):
        out += [(m.start(), m.end(), cls) for m in rx.finditer(text)]
    return out


def weak(attack: bool, decision: int, sink: str, goal: str | None, text: str) -> tuple[list[float], list[float]]:
    """Weak score and residual targets. `text` is the unsafe span, or the payload."""
    if not attack:
        return [0.03, 0.05, 0.08], [0.02] * len(RESIDUAL)
    risk = {REWRITE: 0.85, DEFER: 0.62, BLOCK: 0.95}.get(decision, 0.85)
    exploit = _SINK_EXPLOIT.get(sink, 0.7) * (0.8 if decision == DEFER else 1.0)
    res = [0.95 if rx.search(text) else 0.05 for _, rx in RESIDUAL_RX]
    impact = _GOAL_IMPACT.get(goal or "other", 0.4)
    if res[3] > 0.5 or res[0] > 0.5:
        impact = max(impact, 0.75)
    if decision == REWRITE and max(res) < 0.5:
        res[6] = 0.95  # an instruction that is not the owner's is prompt control at least
    return [risk, exploit, impact], res
