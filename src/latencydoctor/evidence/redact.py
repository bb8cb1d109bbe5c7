"""Takes secrets out of foreign text before it is kept: log lines, server messages, addresses.

Applied on collection, so that live and replayed output are the same and nothing secret reaches a bundle or a report.
Patterns are bounded, so a hostile line cannot make them slow. Numbers that only look alike (`max_tokens=512`) stay.
"""

from __future__ import annotations

import re

HIDDEN = "[redacted]"

_SURE_NAMES = (
    r"(?:password|passwd|passphrase|pwd|secret|api[_-]?key|apikey|access[_-]?key(?:[_-]?id)?|private[_-]?key"
    r"|account[_-]?key|client[_-]?secret|credentials?|authorization|session[_-]?(?:key|id)|signature)"
)
_PREFIX = r"(?i)(?<![A-Za-z0-9])([A-Za-z0-9_.-]{0,40}"
_QUOTE = r"""(?:\\{0,3}["'])?"""
_VALUE = (
    r"""(?:(?:bearer|basic|digest|token)\s{1,3})?"""
    # In order: a list, what JSON in JSON writes, quoted, bare.
    r"""(?:\[[^\]]{0,4096}\]?|\\{1,3}["'][^"'\\]{0,4096}|"[^"]{0,4096}"?|'[^']{0,4096}'?|[^\s,;&"'}\])]{1,4096})"""
)
_NAMED = re.compile(rf"{_PREFIX}{_SURE_NAMES}{_QUOTE}\s{{0,3}}[:=]\s{{0,3}}){_VALUE}")
# Servers count tokens: a figure behind the word is none of the secret kind.
_TOKEN = re.compile(rf"{_PREFIX}token{_QUOTE}\s{{0,3}}[:=]\s{{0,3}})(?!\d{{1,12}}(?:\.\d{{1,9}})?(?![\w-])){_VALUE}")
_FLAG = re.compile(rf"(?i)(?<![\w-])(--[a-z-]{{0,40}}(?:{_SURE_NAMES}|token)\s{{1,3}})(?![-\d])[^\s,;]{{1,4096}}")
_COOKIE = re.compile(rf"(?i)\b((?:set-)?cookie{_QUOTE}\s{{0,3}}[:=]\s{{0,3}}\\{{0,3}}[\"']?)[^\"'\\]{{1,4096}}")
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s{1,3}[A-Za-z0-9._~+/=-]{8,4096}")
_SIGNED = re.compile(
    r"(?i)([?&](?:sig|signature|x-[a-z]{2,8}-(?:signature|credential|security-token)|key)=)[^&\s\"']{4,4096}"
)
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,15}://)[^\s/@]{1,1024}@")
_SHAPES = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,255}"
    r"|\bgithub_pat_[A-Za-z0-9_]{20,255}"
    r"|\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,255}"
    r"|\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,255}"
    r"|\bhf_[A-Za-z0-9]{20,255}"
    r"|\bxox[abeprs]-[A-Za-z0-9-]{10,255}"
    r"|\bglpat-[A-Za-z0-9_-]{20,255}"
    r"|\bnvapi-[A-Za-z0-9_-]{20,255}"
    r"|\bAIza[A-Za-z0-9_-]{35}"
    r"|\bya29\.[A-Za-z0-9_-]{20,1024}"
    r"|\bdckr_pat_[A-Za-z0-9_-]{20,255}"
    r"|\bnpm_[A-Za-z0-9]{30,255}"
    r"|hooks\.slack\.com/services/[A-Za-z0-9/]{20,255}"
    r"|\beyJ[A-Za-z0-9_-]{10,2048}\.[A-Za-z0-9_-]{4,2048}(?:\.[A-Za-z0-9_-]{0,2048})?"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*"
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_PROMPT_NAMES = (
    r"(?:(?:system_|user_|raw_|original_)?prompts?|inputs?|text|content|question|query|instruction|messages)"
)
_PROMPT = re.compile(
    rf"(?i)(?<![A-Za-z0-9])({_PROMPT_NAMES}{_QUOTE}\s{{0,3}}[:=]\s{{0,3}}\[?)"
    r"""(?:\\{1,3}["'][^"']{0,65536}|"(?:[^"\\]|\\.){0,65536}"?|'(?:[^'\\]|\\.){0,65536}'?)"""
)
_TOKEN_IDS = re.compile(rf"(?i)\b((?:prompt_|input_)?(?:token_)?ids{_QUOTE}\s{{0,3}}[:=]\s{{0,3}}\[)[\d,\s]{{1,65536}}")


def redact(text: str, *, emails: bool = False) -> str:
    """The text with every secret it recognises replaced by `[redacted]`; the rest is unchanged."""
    text = _USERINFO.sub(rf"\1{HIDDEN}@", text)
    text = _COOKIE.sub(rf"\1{HIDDEN}", text)
    text = _NAMED.sub(rf"\1{HIDDEN}", text)
    text = _TOKEN.sub(rf"\1{HIDDEN}", text)
    text = _FLAG.sub(rf"\1{HIDDEN}", text)
    text = _SIGNED.sub(rf"\1{HIDDEN}", text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    text = _SHAPES.sub(HIDDEN, text)
    return _EMAIL.sub(HIDDEN, text) if emails else text


def blank_prompts(text: str) -> str:
    """The text with what users wrote blanked: in request lines of inference servers and gateways, as text or ids."""
    return _TOKEN_IDS.sub(rf"\1{HIDDEN}", _PROMPT.sub(rf"\1{HIDDEN}", text))


def plain(text: str, limit: int = 200) -> str:
    """Foreign text on one line for a message: control bytes stripped, secrets taken out, cut to `limit` characters."""
    # Cut generously first, so that a huge answer costs nothing, then again after secrets have become shorter.
    head = redact("".join(c if c.isprintable() else " " for c in text[: limit * 20]))
    line = " ".join(head.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
