"""What stands in a cell reads as it was once it is rendered, and stays in its cell."""

from __future__ import annotations

import html
import re

import pytest
from markdown_it import MarkdownIt

from latencydoctor.report.markdown_table import QUERY_LIMIT, code, table


def cells(*row: str) -> list[str]:
    """The texts of a one-row table's cells as a renderer shows them."""
    page = MarkdownIt("commonmark").enable("table").render("\n".join(table(["x"] * len(row), [row])))
    assert page.count("<td>") == len(row)
    return [html.unescape(one) for one in re.findall(r"<td>(?:<code>)?(.*?)(?:</code>)?</td>", page)]


@pytest.mark.parametrize(
    "text",
    [
        'sum(rate(x{model=~"a|b",le!~"1|2"}[5s]))',
        "count(x{model=~`a.b|c`})",
        "``` twice ```",
        "`x`",
        "rate(x[5m]) or vector(0)",
    ],
)
def test_a_query_can_be_pasted_from_the_rendered_report(text: str) -> None:
    assert cells(code(text), "beside") == [text, "beside"]


@pytest.mark.parametrize("text", ["a\\|b", "a\\\\|b", "||", "\\", "`", "``", "` | ``` |", "<script>|"])
def test_nothing_breaks_out_of_its_cell(text: str) -> None:
    assert cells("first", code(text), "last")[::2] == ["first", "last"]


def test_a_query_is_whole() -> None:
    query = " + ".join(f"rate(x{number}[5s])" for number in range(100))
    assert cells(code(query, QUERY_LIMIT)) == [query]
    assert cells(code("x" * 5000)) == ["x" * 499 + "…"]


def test_nothing_is_no_code() -> None:
    assert code("") == ""
