"""Writes a tiny random Llama and its byte-level tokenizer: enough for a real vLLM to serve, and nothing to download.

The weights are random numbers from a fixed seed, so the answers mean nothing; scheduling, queueing, KV cache and
metrics are those of any model. Standard library only: a safetensors file is a length, a JSON header and the numbers.
"""

from __future__ import annotations

import json
import random
import struct
from array import array
from pathlib import Path

HIDDEN, INTERMEDIATE, LAYERS, HEADS = 128, 256, 2, 2
VOCABULARY = 320
"""256 bytes, two special tokens, and room up to a round number."""

CONTEXT = 1024
END = "<|end|>"
PAD = "<|pad|>"
SEED = 7


def make_model(folder: Path) -> None:
    """Write config, weights and tokenizer into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "config.json", _config())
    _write(folder / "tokenizer.json", _tokenizer())
    special = {"eos_token": END, "pad_token": PAD, "unk_token": PAD}
    _write(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": CONTEXT, **special},
    )
    _write_weights(folder / "model.safetensors")


def _write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")


def _config() -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "head_dim": HIDDEN // HEADS,
        "max_position_embeddings": CONTEXT,
        "vocab_size": VOCABULARY,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "eos_token_id": 256,
        "pad_token_id": 257,
        "bos_token_id": None,
        "torch_dtype": "float32",
    }


def _byte_symbols() -> list[str]:
    """One printable character a byte, as byte-level tokenizers have it: printable bytes stand for themselves."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    return [symbols[byte] for byte in range(256)]


def _tokenizer() -> dict[str, object]:
    vocabulary = {symbol: number for number, symbol in enumerate(_byte_symbols())} | {END: 256, PAD: 257}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": 256, "content": END, **special}, {"id": 257, "content": PAD, **special}],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [], "byte_fallback": False},
    }


def _shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (VOCABULARY, HIDDEN),
        "lm_head.weight": (VOCABULARY, HIDDEN),
        "model.norm.weight": (HIDDEN,),
    }
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        shapes |= {f"{prefix}.self_attn.{name}_proj.weight": (HIDDEN, HIDDEN) for name in "qkvo"}
        shapes |= {f"{prefix}.mlp.{name}_proj.weight": (INTERMEDIATE, HIDDEN) for name in ("gate", "up")}
        shapes[f"{prefix}.mlp.down_proj.weight"] = (HIDDEN, INTERMEDIATE)
        shapes[f"{prefix}.input_layernorm.weight"] = (HIDDEN,)
        shapes[f"{prefix}.post_attention_layernorm.weight"] = (HIDDEN,)
    return shapes


def _write_weights(path: Path) -> None:
    numbers = random.Random(SEED)
    header: dict[str, object] = {}
    weights = array("f")
    for name, shape in _shapes().items():
        begin, count = 4 * len(weights), shape[0] * (shape[1] if len(shape) > 1 else 1)
        weights.extend([1.0] * count if len(shape) == 1 else [numbers.gauss(0.0, 0.02) for _ in range(count)])
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, 4 * len(weights)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + weights.tobytes())
