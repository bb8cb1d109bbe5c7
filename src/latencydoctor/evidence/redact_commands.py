"""Secrets that a command line or a line of a protocol holds at a place of its own, without a name."""

from __future__ import annotations

import re

from latencydoctor.evidence.redact_parts import HIDDEN, LOOKS_SECRET, STATE, WORD, Rule

_UP_TO = r"[^\n|;]{0,400}?\s"
_NO_PORT = r"(?!\d{2,5}(?::\d{1,5})?(?:/\w{1,4})?(?!\S))"

_COMMANDS = (
    Rule(
        ("mysql", "mariadb"), re.compile(rf"(\b(?i:mysql|mariadb)[a-z-]{{0,20}}\b{_UP_TO}-p)(?!\s|\d{{2,5}}:\d){WORD}")
    ),
    Rule(("sshpass",), re.compile(rf"(\bsshpass\s(?:[^\n|;]{{0,40}}?\s)?-p\s{{0,3}}){WORD}")),
    Rule(
        ("login",),
        re.compile(
            r"(\b(?:docker|podman|nerdctl|buildah|skopeo|crane|oras|helm|az|oc|cf)\s(?:[^\n|;]{0,30}?\s)?login\b"
            rf"{_UP_TO}-p\s{{0,3}}){_NO_PORT}(?!-){WORD}"
        ),
    ),
    Rule(
        ("mongo",),
        re.compile(rf"(\bmongo(?:sh|dump|restore|export|import|stat|top)?\b{_UP_TO}-p\s{{0,3}}){_NO_PORT}(?!-){WORD}"),
    ),
    Rule(
        ("curl",),
        re.compile(
            rf"(?i)(\bcurl\b{_UP_TO}(?:(?:-[a-z]{{0,6}}u|--(?:proxy-)?user)[\s=]{{1,3}}(?![\"']?\w{{1,10}}://)"
            rf"|-u(?=[\"']?[^\s:\"']{{1,200}}:[^/])))(?!-){WORD}"
        ),
    ),
    Rule(
        ("-cli",), re.compile(rf"(?i)(\b(?:redis|valkey|keydb)-cli\b{_UP_TO}(?:-a\s{{1,3}}|--pass[\s=]{{1,3}})){WORD}")
    ),
    Rule(("rediscli_auth",), re.compile(rf"(\bREDISCLI_AUTH=){WORD}")),
    Rule(("ldap",), re.compile(rf"(\bldap[a-z]{{3,10}}\b{_UP_TO}-w\s{{0,3}})(?!-){WORD}")),
    Rule(("-pass",), re.compile(rf"(-pass(?:in|out)?\s{{1,3}}pass:){WORD}")),
    Rule(
        ("pass",),
        re.compile(rf"(?i)((?<![\w-])-(?:store|key|srcstore|deststore|new)pass(?:word)?\s{{1,3}})(?!-){WORD}"),
    ),
    Rule(
        ("configure",),
        re.compile(rf"(?i)(\bconfigure\s{{1,3}}set\s{{1,3}}\S{{0,60}}(?:secret|key|token)\S{{0,40}}\s{{1,3}}){WORD}"),
    ),
    Rule(
        ("-stdin",),
        re.compile(r"(\b(?:echo|printf)\s{1,3}(?:-n\s{1,3})?)[^\n|]{1,400}?(?=\s{0,3}\|[^\n]{0,200}--password-stdin)"),
    ),
    Rule(
        ("wandb",),
        re.compile(rf"(\bwandb\s{{1,3}}login\s{{1,3}}(?:--?[a-z]{{1,20}}\s{{1,3}}){{0,3}})(?!-|{STATE}){WORD}"),
    ),
    Rule(("from-literal",), re.compile(rf"(--from-literal[= ]{{1,2}}[^\s=]{{1,100}}=){WORD}")),
    Rule(
        ("-a ", "--auth"),
        re.compile(rf"(\b(?:https?|xh)\s(?:[^\n|;]{{0,100}}?\s)?(?:-a|--auth)[\s=]{{1,3}}[^\s:]{{1,100}}:)(?!/){WORD}"),
    ),
    Rule(("alias",), re.compile(rf"(\bmc\s{{1,3}}alias\s{{1,3}}set\s{{1,3}}(?:\S{{1,300}}\s{{1,3}}){{3}}){WORD}")),
    Rule(("7z",), re.compile(rf"(\b7z[arz]?\b{_UP_TO}-p)(?!\s){WORD}")),
    Rule(("zip",), re.compile(rf"(\b(?:un)?zip\b{_UP_TO}-P\s{{1,3}})(?!-){WORD}")),
    Rule(("smb",), re.compile(rf"(\bsmb[a-z]{{3,10}}\b{_UP_TO}(?:-U|--user)[\s=]{{0,3}}[^\s%]{{1,100}}%){WORD}")),
    Rule(
        ("rabbitmqctl",),
        re.compile(rf"(\brabbitmqctl\b{_UP_TO}(?:add_user|change_password)\s{{1,3}}\S{{1,100}}\s{{1,3}}){WORD}"),
    ),
    Rule(
        ("htpasswd",),
        re.compile(
            rf"(\bhtpasswd\s{{1,3}}-[a-zA-Z]{{0,5}}b[a-zA-Z]{{0,5}}\s{{1,3}}(?:\S{{1,200}}\s{{1,3}}){{1,2}}){WORD}"
        ),
    ),
)

_MECHANISM = r"(?:PLAIN|LOGIN|X?OAUTH\w{0,6}|EXTERNAL|NTLM|GSSAPI|CRAM-MD5|DIGEST-MD5|SCRAM-SHA-\d{1,3}(?:-PLUS)?)"
_NO_USER = (
    rf"(?!{STATE}|{_MECHANISM}\b|(?i:request|response|service|module|header|user|server|client|provider|method|mechanism"
    r"|command|token|code|state|type|took|using|check|plugin|backend|proxy|gateway|pod|container)\b)"
)
_BASE64 = r"(?!XOAUTH)(?=[A-Za-z0-9+/]{0,400}(?:[a-z][A-Z]|\d|=))[A-Za-z0-9+/=]{6,4096}(?![\w-])"

_PROTOCOLS = (
    Rule(
        ("requirepass", "masterauth"),
        re.compile(rf"(?i)(\b(?:requirepass|masterauth)[\"']?\s{{1,3}})(?!{STATE}){WORD}"),
    ),
    Rule(
        ('"auth"',),
        re.compile(r'(?i)("auth")(?:\s{0,3}:\s{0,3}"[^"]{12,4096}"|(?:\s{1,3}"[^"]{1,4096}"){1,2})'),
        rf"\1 {HIDDEN}",
    ),
    Rule(("auth",), re.compile(rf"(\bAUTH(?:ENTICATE)?\s{{1,3}}{_MECHANISM}\s{{1,3}}){_BASE64}")),
    Rule(
        ("auth",),
        re.compile(
            rf"(?m)((?<![\w-])AUTH2?\s{{1,3}})(?:default\s{{1,3}}(?!{STATE})\S{{1,4096}}"
            rf"|(?:{_NO_USER}[\w.@-]{{1,64}}\s{{1,3}})?{LOOKS_SECRET}"
            rf"|(?<=>\sAUTH\s)(?:{_NO_USER}\S{{1,64}}\s)?{_NO_USER}\S{{1,4096}}$)"
        ),
    ),
    Rule(
        ("auth\\",),
        re.compile(r"(AUTH)(?:(?:\\{1,2}r\\{1,2}n)\$\d{1,5}(?:\\{1,2}r\\{1,2}n)[^\\\s]{1,4096}){1,2}"),
        rf"\1 {HIDDEN}",
    ),
    Rule(("setuser",), re.compile(r"(?i)(\bsetuser\b[^\n]{0,300}?\s[\"']?>)[^\s\"']{1,4096}")),
    Rule(
        ("login",),
        re.compile(
            rf"(?m)((?:^|[>:]\s{{1,2}})[A-Za-z]{{1,4}}\d{{1,6}}\s{{1,2}}LOGIN\s{{1,2}}\S{{1,100}}\s{{1,2}})(?:{LOOKS_SECRET}|\"[^\"]{{1,400}}\")"
        ),
    ),
    Rule(("pass",), re.compile(r"((?:>|C:)\s{0,2}PASS\s{1,2})\S{1,4096}")),
    Rule(("scram-sha-",), re.compile(r"(\bSCRAM-SHA-\d{1,3}\$)\d{1,9}:[^\s\"']{8,4096}")),
    Rule((",p=",), re.compile(r"(\bc=[A-Za-z0-9+/=]{1,400},r=[^,\s]{1,400},p=)[A-Za-z0-9+/=]{8,4096}")),
)

RULES = (*_COMMANDS, *_PROTOCOLS)
