"""Templates of log text: `<kind:args>` stands for a made-up value, `<key=kind:args>` for one that `<key>` repeats.

Anything else in angle brackets is text. Values are cheap to draw, because millions of lines want some.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

_MODELS = (
    "resnet50", "bert-base", "e5_large", "whisper_small", "llama-3-8b", "mixtral_8x7b", "yolo_v8", "reranker",
    "tts_en", "qwen2-7b-instruct", "clip_vit", "fraud_scorer",
)  # fmt: skip
_HOSTS = ("gpu-node-3", "worker-a17", "ml-host02", "node-10-4-2-8", "inference-b", "dgx-04")
_WORDS = (
    "the", "model", "answers", "quickly", "when", "rivers", "carry", "stones", "over", "old", "bridges", "at", "night",
    "a", "small", "orange", "ticket", "was", "sent", "to", "every", "reader", "of", "this", "page",
)  # fmt: skip
_SLOT = re.compile(r"<(?:(\w+)=)?([a-z]\w*)((?::[^<>:]*)*)>")


@dataclass(slots=True)
class Drawn:
    """Where values come from while one record or signature is rendered: `kept` holds the named ones."""

    rng: random.Random
    at_s: float = 0.0
    kept: dict[str, str] = field(default_factory=dict)


def _n(drawn: Drawn, low: str = "1", high: str = "9999") -> str:
    return str(drawn.rng.randint(int(low), int(high)))


def _f(drawn: Drawn, low: str = "0", high: str = "1", digits: str = "2") -> str:
    return f"{drawn.rng.uniform(float(low), float(high)):.{int(digits)}f}"


def _hex(drawn: Drawn, digits: str = "12") -> str:
    return f"{drawn.rng.getrandbits(int(digits) * 4):0{digits}x}"


def _uuid(drawn: Drawn) -> str:
    raw = f"{drawn.rng.getrandbits(128):032x}"
    return f"{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"


def _ip(drawn: Drawn) -> str:
    bits = drawn.rng.getrandbits(16)
    return f"10.{bits & 63}.{(bits >> 6) & 127}.{bits % 251 + 1}"


def _words(drawn: Drawn, low: str = "4", high: str = "16") -> str:
    return " ".join(drawn.rng.choices(_WORDS, k=drawn.rng.randint(int(low), int(high))))


def _pick(drawn: Drawn, options: str) -> str:
    return drawn.rng.choice(options.split("|"))


def _clock(drawn: Drawn, shift_s: str = "0") -> str:
    return datetime.fromtimestamp(drawn.at_s + float(shift_s), UTC).strftime("%H:%M:%S")


def _epoch(drawn: Drawn, shift_s: str = "0") -> str:
    return str(int(drawn.at_s + float(shift_s)))


def _pod(drawn: Drawn) -> str:
    return f"{drawn.rng.choice(_MODELS).replace('_', '-')}-predictor-{_hex(drawn, '9')}-{_hex(drawn, '5')}"


def _port(drawn: Drawn) -> str:
    return str(drawn.rng.randint(20000, 60999))


def _model(drawn: Drawn) -> str:
    return drawn.rng.choice(_MODELS)


def _host(drawn: Drawn) -> str:
    return drawn.rng.choice(_HOSTS)


_KINDS: dict[str, Callable[..., str]] = {
    "n": _n,
    "f": _f,
    "hex": _hex,
    "uuid": _uuid,
    "ip": _ip,
    "port": _port,
    "words": _words,
    "pick": _pick,
    "clock": _clock,
    "epoch": _epoch,
    "pod": _pod,
    "model": _model,
    "host": _host,
}


@dataclass(frozen=True, slots=True)
class _Slot:
    key: str
    make: Callable[..., str]
    arguments: tuple[str, ...]


class Template:
    """A text with slots; `render` fills them."""

    __slots__ = ("_parts", "dated")

    def __init__(self, text: str) -> None:
        self._parts = tuple(_parts(text))
        self.dated = any(isinstance(part, _Slot) and part.make in (_clock, _epoch) for part in self._parts)
        """Whether it tells a time, which must be that of its line."""

    def render(self, drawn: Drawn) -> str:
        """The text with values of `drawn`; named ones are remembered there."""
        pieces = []
        for part in self._parts:
            if isinstance(part, str):
                pieces.append(part)
                continue
            value = drawn.kept.get(part.key) if part.key else None
            if value is None:
                value = part.make(drawn, *part.arguments)
                if part.key:
                    drawn.kept[part.key] = value
            pieces.append(value)
        return "".join(pieces)


def _parts(text: str) -> Iterator[str | _Slot]:
    end = 0
    for match in _SLOT.finditer(text):
        key, kind, rest = match[1] or "", match[2], match[3]
        if kind not in _KINDS and (kind not in _SHARED or rest):
            continue
        if key and key not in _SHARED:
            raise ValueError(f"{key} is no name for a value: {text[:80]}")
        yield text[end : match.start()]
        end = match.end()
        if kind in _KINDS:
            yield _Slot(key, _KINDS[kind], tuple(rest.split(":")[1:]))
        else:
            yield _Slot(kind, partial(_unnamed, kind), ())
    yield text[end:]


def _unnamed(kind: str, _drawn: Drawn) -> str:
    raise LookupError(f"<{kind}> is used before it is named")


_SHARED = frozenset(("m", "p", "h", "k"))
"""Names for values. A record may use what an earlier one of its signature has named."""
