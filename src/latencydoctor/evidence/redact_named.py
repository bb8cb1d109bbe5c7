"""Secrets beside what names them: settings, headers, environments, flags, markup and sentences."""

from __future__ import annotations

import re

from latencydoctor.evidence.redact_parts import (
    IS,
    LOOKS_SECRET,
    NAME,
    NAME_MARKS,
    QUOTE,
    QUOTED,
    STATE,
    SURE_NAMES,
    TOKEN,
    VALUE,
    WORD,
    Rule,
)

_NAMED = Rule(NAME_MARKS, re.compile(rf"(?i)({SURE_NAMES}{IS})(?!{STATE}){VALUE}"))
# Servers count tokens: a figure behind the word is none of the secret kind, unless its name or its length says so.
_TOKEN = Rule(
    ("token",),
    re.compile(rf"(?i)({TOKEN}{IS})(?!\d{{1,12}}(?:\.\d{{1,9}})?(?![\w-])|[\"']?</?\|?\w{{1,30}}\|?>|{STATE}){VALUE}"),
)
_PASS = Rule(
    ("pass",),
    re.compile(
        rf"(?i)((?:(?-i:[A-Z]_PASS)|(?:db|user|ssh|become|smtp|mail|admin|root|redis|http|proxy|sudo|login|ftp|ldap)_?pass)"
        rf"{IS}(?!\d{{1,3}}(?!\S)|{STATE})){VALUE}"
    ),
)
_PASS_ALONE = Rule(
    ("pass",),
    re.compile(rf"((?<![\w-])pass{IS}[\"']?(?!\S{{0,64}}/))(?:{LOOKS_SECRET})"),
)
"""Tests, and passes of a network, are counted under the same word."""
_TOKEN_NAMES = (
    r"(?:access|auth|authentication|refresh|bearer|bot|csrf|xsrf|api|hf|hub|github|gitlab|slack|vault|registry|session"
    r"|security|secret|personal|device|push|oauth|id|client|deploy|job|service|user|admin|login)[_. -]?token"
)
_TOKEN_OF_FIGURES = Rule(
    ("token",),
    re.compile(
        rf"(?i)((?:(?<![a-z]){_TOKEN_NAMES}{IS}(?=\d{{6}})|(?<![\w#.-])token{IS}(?=\d{{10}})))\d{{6,4096}}(?![\w.])"
    ),
)
_PAIR = Rule(
    (*NAME_MARKS, "token"),
    re.compile(rf"""(?i)(["']{NAME}["']\s{{0,3}},\s{{0,3}})(?!["']value)b?{QUOTED}"""),
)
"""How programs print headers and arguments: lists of pairs, of text or bytes."""
_ENVIRONMENT = Rule(
    ("value",),
    re.compile(
        rf"""(?i)(\b(?:name|key){IS}["']?{NAME}["']?(?:\s{{0,3}},\s{{0,12}}|\s{{1,12}})["']?value{IS}){VALUE}"""
    ),
)
"""How a container's variables are printed: a name and, beside it, its value."""
_ELEMENT = Rule(
    (*NAME_MARKS, "token"),
    re.compile(rf"(?i)((?:<|&lt;){NAME}(?:>|&gt;))(?:[^<&]|&(?!lt;)){{1,4096}}(?=(?:<|&lt;)/)"),
)
_FLAG = Rule(
    (*NAME_MARKS, "token"),
    re.compile(
        rf"(?i)(?<![\w-])(--?[a-z-]{{0,40}}(?:{SURE_NAMES}\s{{1,3}}(?!\d{{1,3}}(?!\S))|token\s{{1,3}}(?!\d{{1,8}}(?!\S))))"
        rf"(?!-|{STATE}){WORD}"
    ),
)
_PROSE_NAMES = (
    r"(?:pass(?:word|phrase|wd|code)|pwd|secret|credential|(?:api|access|secret|account|private|license)[ _-]?key)s?"
)
_PROSE_TOKEN = r"(?<!next\s)(?<!stop\s)(?<!last\s)(?<!first\s)token"
_IS_SAID = (
    r"(?:\s{1,3}(?:for|of)(?:\s{1,3}[^\s:]{1,64}){1,3}?)?\s{1,3}"
    r"(?:(?:is|was|are|were|has\s{1,3}been|to)(?:\s{1,3}(?:now|still|set\s{1,3}to|changed\s{1,3}to|reset\s{1,3}to))?\s{0,3}:?\s{1,3})"
)
_QUOTED_WORDS = rf"""(?:"(?!{STATE})[^"\n]{{3,400}}"|'(?!{STATE})[^'\n]{{3,400}}'|`(?!{STATE})[^`\n]{{3,400}}`)"""
_PROSE = Rule(
    ("passw", "passphrase", "passcode", "pwd", "secret", "credential", "key", "token"),
    re.compile(
        rf"(?i)((?:{_PROSE_NAMES}|{_PROSE_TOKEN}){_IS_SAID}|(?:pass(?:word|phrase|wd)|(?:api|access)[ _-]key)\s{{1,3}})"
        rf"(?-i:{LOOKS_SECRET}|{_QUOTED_WORDS})"
    ),
)
_PROSE_OF = Rule(
    ("passw", "secret"),
    re.compile(
        r"(?i)((?:password|passwd|secret)(?:\s{1,3}(?:is|was)\s{1,3}\w{1,20})?\s{1,3}(?:for|of)\s{1,3}[^\s:]{1,64}:\s{1,3})"
        rf"(?!{STATE})(?=\S{{0,64}}\d)(?=\S{{0,64}}[a-z])\S{{6,400}}"
    ),
)
_PROSE_BARE_TOKEN = Rule(
    ("token",),
    re.compile(
        r"(?i)(\b(?:with|using|invalid|bad|expired|revoked|unknown|access|api|auth|bearer|refresh)\s{1,3}token:?\s{1,3}[\"'`]?)"
        rf"(?=\S{{12}})(?-i:{LOOKS_SECRET})"
    ),
)
_VARIABLE = Rule(
    (*NAME_MARKS, "token"),
    re.compile(
        r"""(?P<keep>(?P<quote>["'])[A-Z0-9_]{0,40}(?:PASSWORD|PASSWD|PASSPHRASE|PASS|SECRET|TOKEN|KEY|CREDENTIALS?)=)"""
        r"""(?=\S)[^"'\\\n]{1,4096}(?=(?P=quote))"""
    ),
)
"""A variable quoted as a whole may hold what ends a bare value."""
_PROSE_FIGURES = Rule(
    ("passw", "passphrase", "passcode", "pwd", "secret"),
    re.compile(rf"(?i)((?:pass(?:word|phrase|wd|code)|pwd|secret){_IS_SAID})\d{{4,400}}(?![\w:.-]?\w)"),
)
_IDENTIFIED = Rule(
    ("identified",),
    re.compile(rf"(?i)(\bidentified\s{{1,3}}(?:with\s{{1,3}}\S{{1,40}}\s{{1,3}})?(?:by|as)\s{{1,3}}){QUOTED}"),
)
COOKIE = Rule(
    ("cookie",),
    re.compile(rf"(?i)\b((?:set-)?cookie{QUOTE}\s{{0,3}}[:=]\s{{0,3}}\\{{0,3}}[\"']?)[^\"'\\]{{1,4096}}"),
)

RULES = (
    *(
        _VARIABLE,
        _ENVIRONMENT,
        _PAIR,
        _ELEMENT,
        _NAMED,
        _TOKEN,
        _TOKEN_OF_FIGURES,
        _PASS,
        _PASS_ALONE,
        _FLAG,
        _PROSE,
        _PROSE_OF,
        _PROSE_BARE_TOKEN,
        _PROSE_FIGURES,
        _IDENTIFIED,
    ),
)
