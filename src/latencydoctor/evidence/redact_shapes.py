"""Secrets that are known by how they look, wherever they stand: keys, signed links, credentials in an address."""

from __future__ import annotations

import re

from latencydoctor.evidence.redact_parts import HIDDEN, Rule

# A password may hold a slash; what only looks like one is a port and a path.
USERINFO = Rule(
    ("://",),
    re.compile(
        r"(?i)\b([a-z][a-z0-9+.-]{1,15}://)(?:[^\s/@]{1,1024}|[^\s/@:]{0,256}:(?!\d{1,5}/)[^\s@\"'<>?]{1,1024})@"
    ),
    rf"\1{HIDDEN}@",
)
DIGEST = Rule(
    ("digest",),
    re.compile(r'(?i)\b(digest)\s{1,3}(?:[a-z]{1,20}=(?:"[^"]{0,1024}"|[^\s,"]{1,1024})(?:,\s{0,3})?){2,20}'),
    rf"\1 {HIDDEN}",
)
SIGNED = Rule(
    ("sig", "x-", "key="),
    re.compile(
        r"(?i)([?&](?:sig|signature|x-[a-z]{2,8}-(?:signature|credential|security-token)|key)=)[^&\s\"']{4,4096}"
    ),
)
SCHEME = Rule(
    ("bearer", "basic"),
    re.compile(
        r"\b((?i:bearer|basic))\s{1,3}(?=[A-Za-z0-9._~+/-]{0,200}(?:\d|[a-z][A-Z]|={1,2}(?!\w))|[A-Za-z._~+/-]{20})"
        r"[A-Za-z0-9._~+/-]{6,4096}={0,2}"
    ),
    rf"\1 {HIDDEN}",
)
"""`basic authentication` is no header."""
_WEBHOOK = Rule(
    ("hooks.slack.com", "/api/webhooks/", "/bot"),
    re.compile(
        r"(hooks\.slack\.com/(?:services|workflows|triggers)/|/api/webhooks/\d{1,24}/|/bot\d{1,16}:)[\w/-]{16,255}"
    ),
)

_SHAPES = (
    (("akia", "asia"), r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    (("gho_", "ghp_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{20,255}"),
    (("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{20,255}"),
    (("sk-", "pk-", "rk-"), r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,255}"),
    (("k_live_", "k_test_"), r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,255}"),
    (("hf_",), r"\bhf_[A-Za-z0-9]{20,255}"),
    (("gsk_",), r"\bgsk_[A-Za-z0-9]{40,255}"),
    (("r8_",), r"\br8_[A-Za-z0-9]{30,255}"),
    (("xox",), r"\bxox[abeprs]-[A-Za-z0-9-]{10,255}"),
    (("xapp-",), r"\bxapp-\d-[A-Za-z0-9-]{10,255}"),
    (("glpat-",), r"\bglpat-[A-Za-z0-9_-]{20,255}"),
    (("nvapi-",), r"\bnvapi-[A-Za-z0-9_-]{20,255}"),
    (("pypi-",), r"\bpypi-Ag[A-Za-z0-9_-]{20,1024}"),
    (("sg.",), r"\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{30,128}"),
    (("hvs.", "hvb."), r"\bhv[bs]\.[A-Za-z0-9_-]{20,1024}"),
    (("aiza",), r"\bAIza[A-Za-z0-9_-]{35}"),
    (("ya29.",), r"\bya29\.[A-Za-z0-9_-]{20,1024}"),
    (("dckr_pat_",), r"\bdckr_pat_[A-Za-z0-9_-]{20,255}"),
    (("npm_",), r"\bnpm_[A-Za-z0-9]{30,255}"),
    (("atatt3", "atbb"), r"\bAT(?:ATT3|BB)[A-Za-z0-9_=-]{16,255}"),
    (("dapi",), r"\bdapi[0-9a-f]{32}"),
    (("_v1_",), r"\bdo[opr]_v1_[0-9a-f]{32,255}"),
    (("glsa_", "glc_"), r"\bgl(?:sa|c)_[A-Za-z0-9_=]{20,1024}"),
    (("pcsk_",), r"\bpcsk_[A-Za-z0-9_]{20,255}"),
    (("age-secret-key-",), r"\bAGE-SECRET-KEY-1[0-9A-Z]{8,255}"),
    # What a password was hashed to can be tried at leisure.
    (("$",), r"\$(?:2[abxy]|5|6|y|apr1|argon2(?:id?|d)|pbkdf2[\w-]{0,16})\$[./A-Za-z0-9$=,+]{20,512}"),
    (("sk",), r"\bSK[0-9a-f]{32}\b"),
    # A key in PEM, encoded once more; neither a certificate nor a public key.
    (("ls0tls1crudjti",), r"LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM)[A-Za-z0-9+/]{8,65536}={0,2}"),
    (("eyj",), r"\beyJ[A-Za-z0-9_-]{10,2048}\.[A-Za-z0-9_-]{4,2048}(?:\.[A-Za-z0-9_-]{0,2048})?"),
    (
        ("private key-", "private key block-"),
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,9}-----(?:[^-]|-(?!----)){0,65536}(?:-----END [A-Z ]{0,50}-----)?",
    ),
)

RULES = (_WEBHOOK, *(Rule(marks, re.compile(pattern), HIDDEN) for marks, pattern in _SHAPES))
