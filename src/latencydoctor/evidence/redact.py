"""Takes secrets out of foreign text before it is kept: log lines, server messages, addresses.

Applied on collection, so that live and replayed output are the same and nothing secret reaches a bundle or a report.
Patterns are bounded, so a hostile line cannot make them slow. Numbers that only look alike (`max_tokens=512`) stay.
"""

from __future__ import annotations

import re

HIDDEN = "[redacted]"

_SURE_NAMES = (
    r"(?:password|passwd|passphrase|pwd|secret|api[_-]?key|apikey|access[_-]?key|private[_-]?key"
    r"|account[_-]?key|client[_-]?secret|credential|authorization|session[_-]?(?:key|id)|signature)"
    r"s?(?:[_-]?(?:id|key|base|value)){0,2}"
)
_PREFIX = r"(?i)(?<![A-Za-z0-9])([A-Za-z0-9_.-]{0,40}"
_QUOTE = r"""(?:\\{0,3}["'])?"""
# Addresses and forms have both sides of it encoded.
_IS = rf"{_QUOTE}\s{{0,3}}(?:[:=]|%3[AD])(?:\s|%20){{0,3}}"
_QUOTED = r"""(?:"(?:[^"\\]|\\.){0,4096}"?|'(?:[^'\\]|\\.){0,4096}'?)"""
_VALUE = (
    r"""(?:(?:bearer|basic|digest|token)(?:\s|%20){1,3})?"""
    # In order: a list, a mapping, what JSON in JSON writes, quoted, bare.
    r"""(?:\[[^\]]{0,4096}\]?|\{[^}]{0,4096}\}?|\\{1,3}["'][^"'\\]{0,4096}"""
    rf"""|b?{_QUOTED}|[^\s,;&"'}}\])]{{1,4096}})"""
)
_NAMED = re.compile(rf"{_PREFIX}{_SURE_NAMES}{_IS}){_VALUE}")
# Servers count tokens: a figure behind the word is none of the secret kind.
_TOKEN = re.compile(rf"{_PREFIX}token{_IS})(?!\d{{1,12}}(?:\.\d{{1,9}})?(?![\w-])){_VALUE}")
# A model's settings name the tokens that mean something to it.
_NAME = rf"[A-Za-z0-9_.-]{{0,40}}(?:{_SURE_NAMES}|(?<!eos_)(?<!bos_)(?<!pad_)(?<!unk_)(?<!sep_)(?<!cls_)token)"
_PAIR = re.compile(rf"""(?i)(["']{_NAME}["']\s{{0,3}},\s{{0,3}})(?!["']value)b?{_QUOTED}""")
"""How programs print headers: lists of pairs, of text or bytes."""
_ENVIRONMENT = re.compile(
    rf"""(?i)(\b(?:name|key){_IS}["']?{_NAME}["']?(?:\s{{0,3}},\s{{0,12}}|\s{{1,12}})["']?value{_IS}){_VALUE}"""
)
"""How a container's variables are printed: a name and, beside it, its value."""
_ELEMENT = re.compile(rf"(?i)(<{_NAME}>)[^<]{{1,4096}}(?=</)")
_FLAG = re.compile(rf"(?i)(?<![\w-])(--[a-z-]{{0,40}}(?:{_SURE_NAMES}|token)\s{{1,3}})(?![-\d])[^\s,;]{{1,4096}}")
_TOOLS = re.compile(
    r"(?i)(\b(?:requirepass|masterauth)\s{1,3}[\"']?|\b(?:redis|valkey)-cli\b[^\n]{0,200}?\s-a\s{1,3}[\"']?"
    r"|\bcurl\b[^\n]{0,400}?\s(?:-u|--user)[\s=]{1,3}[\"']?(?!\w{1,10}://))[^\s\"']{1,4096}"
)
_AUTH = re.compile(r'(?i)("auth")(?:\s{0,3}:\s{0,3}"[^"]{12,4096}"|(?:\s{1,3}"[^"]{1,4096}"){1,2})')
"""A registry's login, and a store's command as its monitor shows it."""
_COOKIE = re.compile(rf"(?i)\b((?:set-)?cookie{_QUOTE}\s{{0,3}}[:=]\s{{0,3}}\\{{0,3}}[\"']?)[^\"'\\]{{1,4096}}")
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s{1,3}[A-Za-z0-9._~+/=-]{8,4096}")
_DIGEST = re.compile(r'(?i)\b(digest)\s{1,3}(?:[a-z]{1,20}=(?:"[^"]{0,1024}"|[^\s,"]{1,1024})(?:,\s{0,3})?){2,20}')
_SIGNED = re.compile(
    r"(?i)([?&](?:sig|signature|x-[a-z]{2,8}-(?:signature|credential|security-token)|key)=)[^&\s\"']{4,4096}"
)
# A password may hold a slash; what only looks like one is a port and a path.
_USERINFO = re.compile(
    r"(?i)\b([a-z][a-z0-9+.-]{1,15}://)(?:[^\s/@]{1,1024}|[^\s/@:]{0,256}:(?!\d{1,5}/)[^\s@\"'<>?]{1,1024})@"
)
_SHAPES = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,255}"
    r"|\bgithub_pat_[A-Za-z0-9_]{20,255}"
    r"|\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,255}"
    r"|\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,255}"
    r"|\bhf_[A-Za-z0-9]{20,255}"
    r"|\bgsk_[A-Za-z0-9]{40,255}"
    r"|\br8_[A-Za-z0-9]{30,255}"
    r"|\bxox[abeprs]-[A-Za-z0-9-]{10,255}"
    r"|\bxapp-\d-[A-Za-z0-9-]{10,255}"
    r"|\bglpat-[A-Za-z0-9_-]{20,255}"
    r"|\bnvapi-[A-Za-z0-9_-]{20,255}"
    r"|\bpypi-Ag[A-Za-z0-9_-]{20,1024}"
    r"|\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{30,128}"
    r"|\bhv[bs]\.[A-Za-z0-9_-]{20,1024}"
    r"|\bAIza[A-Za-z0-9_-]{35}"
    r"|\bya29\.[A-Za-z0-9_-]{20,1024}"
    r"|\bdckr_pat_[A-Za-z0-9_-]{20,255}"
    r"|\bnpm_[A-Za-z0-9]{30,255}"
    r"|hooks\.slack\.com/services/[A-Za-z0-9/]{20,255}"
    r"|\beyJ[A-Za-z0-9_-]{10,2048}\.[A-Za-z0-9_-]{4,2048}(?:\.[A-Za-z0-9_-]{0,2048})?"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!----)){0,65536}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
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
    text = _DIGEST.sub(rf"\1 {HIDDEN}", text)
    for kind in (_ENVIRONMENT, _PAIR, _ELEMENT, _NAMED, _TOKEN, _FLAG, _TOOLS, _SIGNED):
        text = kind.sub(rf"\1{HIDDEN}", text)
    text = _AUTH.sub(rf"\1 {HIDDEN}", text)
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
