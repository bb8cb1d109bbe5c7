"""One view of a question's text, shared by the gateway and by whoever computes encodings ahead of time.

The gateway looks answers up under `cache_key(normalise(text))` and tokenises `mask_numbers(normalise(text))`. Encodings
that are computed ahead must go through the same two functions, else their token ids differ from those of live traffic.
"""

from __future__ import annotations

import re
import unicodedata

KEY_PREFIX = "faq:"
"""Every answer in the cache has a key that starts so; nothing else in the cache does."""

_DIGITS = re.compile(r"\d+")


def normalise(text: str) -> str:
    """The question in lower case, in composed compatibility form, without control characters or spare white space.

    Empty when nothing readable is left. Punctuation and numbers stay, so "order 48213" has a cache entry of its own.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if not text.isprintable():
        # Control, format and private characters part words, as white space does; marks and symbols are printable.
        text = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(text.lower().split())


def mask_numbers(text: str) -> str:
    """The text with each run of digits replaced by "0", so that token ids do not depend on an order number."""
    return _DIGITS.sub("0", text)


def cache_key(model_version: str, normalised: str) -> str:
    """Key of the cached answer to a normalised question; `model_version` keeps two models' answers apart."""
    return f"{KEY_PREFIX}{model_version}:{normalised}"
