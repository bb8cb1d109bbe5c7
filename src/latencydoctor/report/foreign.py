"""Text that came from elsewhere, made safe to print: log lines, labels, model names, server errors."""

from __future__ import annotations

from rich.text import Text


def clean(text: str, limit: int = 300) -> str:
    """Without control and format characters (escapes, bidirectional overrides), one line, cut to `limit` characters."""
    spaced = (" " if one.isspace() else one for one in text)
    kept = "".join(one for one in spaced if one.isprintable())
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def plain(text: str, style: str = "", limit: int = 300) -> Text:
    """The same as rich text that is never read as markup: `[/INST]` in a log line stays what it is."""
    return Text(clean(text, limit), style=style)


def markdown(text: str, limit: int = 300) -> str:
    """The same for Markdown: nothing in it can start a heading, a link, a table cell or HTML."""
    escaped = clean(text, limit)
    for character in "\\`*_{}[]<>#|!~&$":
        escaped = escaped.replace(character, "\\" + character)
    return escaped
