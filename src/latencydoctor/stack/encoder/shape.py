"""The encoder's fixed sizes, apart so that compiling a configuration loads no tokenizer."""

MAX_TOKENS = 16
"""Every input has this length, padded or cut, so that Triton can always batch."""

EMBEDDING_WIDTH = 384
"""Numbers in one sentence embedding."""
