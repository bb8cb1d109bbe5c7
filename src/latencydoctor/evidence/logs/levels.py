"""Levels of lines as they stand in the bytes of a file, under whatever wrappers."""

from __future__ import annotations

_QUOTE = r'\\{0,15}"'
_LOUD_WORDS = "(?i:err|error|crit|critical|d?panic|fatal|alert|emergency)"
LOUD = (
    r"\b(?:ERROR|CRITICAL|FATAL|SEVERE|EMERG|ALERT|PANIC)\b",
    r"\bE(?:0[1-9]|1[0-3])[0-3][0-9] [0-2][0-9]:[0-5][0-9]:",
    r"[0-9]Z [EF] [0-9]",
    r"\[[EF]:onnxruntime:",
    r"\[TRT\] \[[EF]\]",
    r"\[[EF]\] \[TRT\]",
    r"[0-9]{6}: [EF] [a-z]",
    r",[0-9]{3} [EC] [0-9]+ [0-9]+\] \(",
    r"\[E ProcessGroup",
    r"\[(?:error|crit|alert|emerg)\] [0-9]+#",
    rf"(?:level|severity|levelname|lvl){_QUOTE} ?: ?{_QUOTE}{_LOUD_WORDS}{_QUOTE}",
    rf"PRIORITY{_QUOTE} ?: ?{_QUOTE}[0-3]{_QUOTE}",
)
"""Heads of lines at ERROR and above: such lines are looked at even when no rule knows them."""
