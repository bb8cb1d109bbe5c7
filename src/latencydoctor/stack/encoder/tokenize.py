"""Text to the encoder's fixed-length input: the stage of a request before inference."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from latencydoctor.stack.encoder.shape import MAX_TOKENS

__all__ = ["MAX_TOKENS", "TOKENIZER_FILE", "TextTokenizer", "Tokens", "mask_numbers", "normalise"]

TOKENIZER_FILE = Path(__file__).with_name("tokenizer.json")

_DIGITS = re.compile(r"\d+")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Tokens:
    """One text as the model's two inputs, each MAX_TOKENS long; `mask` is 1 where a token is real."""

    ids: tuple[int, ...]
    mask: tuple[int, ...]


def normalise(text: str) -> str:
    """The form in which two spellings of one question are equal: NFKC, case folded, single spaces. Keeps numbers."""
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", text)).strip().casefold()


def mask_numbers(text: str) -> str:
    """Each run of digits becomes `0`: an order number says nothing about which answer fits."""
    return _DIGITS.sub("0", text)


class TextTokenizer:
    """Tokenises normalised, masked text; safe to share between threads."""

    def __init__(self, path: Path = TOKENIZER_FILE) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding(length=MAX_TOKENS)

    def __call__(self, question: str) -> Tokens:
        """The tokens of one question, whatever its spelling and numbers."""
        encoded = self._tokenizer.encode(mask_numbers(normalise(question)))
        return Tokens(tuple(encoded.ids), tuple(encoded.attention_mask))

    def batch(self, questions: Sequence[str]) -> list[Tokens]:
        """The same for many questions at once."""
        texts = [mask_numbers(normalise(question)) for question in questions]
        found = self._tokenizer.encode_batch(texts)
        return [Tokens(tuple(item.ids), tuple(item.attention_mask)) for item in found]
