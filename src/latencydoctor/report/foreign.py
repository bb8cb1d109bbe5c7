"""Text that came from elsewhere, made safe to print: log lines, labels, model names, server errors."""

from __future__ import annotations

import unicodedata

from rich.text import Text


def clean(text: str, limit: int = 300) -> str:
    """Without control and format characters (escape sequences, bidirectional overrides), cut to `limit` characters."""
    kept = "".join(" " if one in "\t\r\n" else one for one in text if one in "\t\r\n" or _printable(one))
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def _printable(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")


def plain(text: str, style: str = "", limit: int = 300) -> Text:
    """The same as rich text that is never read as markup: `[/INST]` in a log line stays what it is."""
    return Text(clean(text, limit), style=style)


def markdown(text: str, limit: int = 300) -> str:
    """The same for Markdown: nothing in it can start a heading, a link, a table cell or HTML."""
    escaped = clean(text, limit)
    for character in "\\`*_{}[]<>#|!~&$":
        escaped = escaped.replace(character, "\\" + character)
    return escaped
