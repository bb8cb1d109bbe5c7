"""Where the INT8 build of an encoder is kept: named by the digest of everything that it is made from."""

from __future__ import annotations

import hashlib
from pathlib import Path

from latencydoctor.stack.encoder import corpus, encodings
from latencydoctor.stack.versions import MODEL_SOURCE, SHELL_FILE

RECIPES = 1
"""Raised when a recipe changes, so that builds made before do not pass for today's."""


def inputs_digest(model: Path, cache: Path) -> str:
    """Names everything that a build is made from: model, tokenizer, FAQ, recipes, and the shell around the encoder."""
    made_from = encodings.location(corpus.faq_corpus(), model, cache).name
    shell = (MODEL_SOURCE / SHELL_FILE).read_text(encoding="utf-8")
    return hashlib.sha256(f"{RECIPES}\n{made_from}\n{shell}".encode()).hexdigest()[:20]


def location(model: Path, cache: Path) -> Path:
    """The folder in `cache` that holds, or would hold, the build made from this model and today's FAQ."""
    return cache / f"int8-{inputs_digest(model, cache)}"
