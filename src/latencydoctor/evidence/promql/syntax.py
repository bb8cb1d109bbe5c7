"""PromQL text to a tree of our own records: the only module that knows promql-parser.

The parser checks names, types and durations. What it accepts and `evaluate` does not compute is refused here or there
by an `UnsupportedError` that names it, so that no expression is ever given a wrong value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import promql_parser as parser

from latencydoctor.evidence.promql.values import NAME, PromqlError, UnsupportedError

LONGEST_CHARACTERS = 20_000
"""Far above any expression of a dialect; deeper nesting than this allows would exhaust the stack."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on one label; `pattern` is for `=~` and `!~`, which match the whole value."""

    name: str
    value: str
    negated: bool
    pattern: re.Pattern[str] | None = None

    def accepts(self, value: str) -> bool:
        """Whether a label of this value (empty when absent) fulfils it."""
        met = self.pattern.fullmatch(value) is not None if self.pattern else value == self.value
        return met != self.negated


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar written out."""

    value: float


@dataclass(frozen=True, slots=True)
class Text:
    """A string written out."""

    value: str


@dataclass(frozen=True, slots=True)
class Selector:
    """Series by name and label matchers, as of `offset_ms` earlier; `name` is empty when only matchers were given."""

    name: str
    matchers: tuple[Matcher, ...]
    offset_ms: int = 0


@dataclass(frozen=True, slots=True)
class RangeSelector:
    """A selector over a span before the moment of evaluation."""

    selector: Selector
    range_ms: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregation `by` the labels, or `without` them."""

    operator: str
    operand: Expression
    parameter: Expression | None
    labels: tuple[str, ...]
    without: bool


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands; `labels` are those of `on` (or, when `ignoring`, all others count).

    `many` is the side whose elements may share a partner: "left", "right" or empty; `copied` are labels that the
    other side adds to it.
    """

    operator: str
    left: Expression
    right: Expression
    labels: tuple[str, ...] = ()
    ignoring: bool = True
    as_bool: bool = False
    many: str = ""
    copied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Negation:
    """A minus before an expression."""

    operand: Expression


Expression = Number | Text | Selector | RangeSelector | Call | Aggregation | Binary | Negation


def parse(text: str) -> Expression:
    """The tree of an expression; `PromqlError` says what is wrong with it, `UnsupportedError` what is not done here."""
    if len(text) > LONGEST_CHARACTERS:
        raise UnsupportedError(f"expressions of more than {LONGEST_CHARACTERS} characters")
    try:
        tree = parser.parse(text)
    except ValueError as error:
        raise PromqlError(f"no valid PromQL: {error}") from error
    return _read(tree)


def compile_pattern(text: str) -> re.Pattern[str]:
    """A regular expression in the subset that means the same to RE2 and to Python."""
    if "[:" in text or "\\Z" in text:
        raise UnsupportedError(f"the regular expression {text!r}")
    try:
        return re.compile(text, re.ASCII)
    except re.error as error:
        raise UnsupportedError(f"the regular expression {text!r}") from error


def _read(node: object) -> Expression:
    reader = _READERS.get(type(node))
    if reader is None:
        raise UnsupportedError(_NAMES.get(type(node), type(node).__name__))
    return reader(node)


def _number(node: parser.NumberLiteral) -> Expression:
    return Number(float(node.val))


def _text(node: parser.StringLiteral) -> Expression:
    return Text(node.val)


def _paren(node: parser.ParenExpr) -> Expression:
    return _read(node.expr)


def _negation(node: parser.UnaryExpr) -> Expression:
    return Negation(_read(node.expr))


def _selector(node: parser.VectorSelector) -> Selector:
    if node.at is not None:
        raise UnsupportedError("the @ modifier")
    if node.matchers.or_matchers:
        raise UnsupportedError("or between matchers")
    matchers = tuple(_matcher(one) for one in node.matchers.matchers)
    name = node.name or next(
        (one.value for one in matchers if one.name == NAME and not one.negated and not one.pattern), ""
    )
    return Selector(name, matchers, node.offset // timedelta(milliseconds=1) if node.offset else 0)


def _matcher(one: parser.Matcher) -> Matcher:
    negated = one.op in (parser.MatchOp.NotEqual, parser.MatchOp.NotRe)
    is_pattern = one.op in (parser.MatchOp.Re, parser.MatchOp.NotRe)
    return Matcher(one.name, one.value, negated, compile_pattern(one.value) if is_pattern else None)


def _range(node: parser.MatrixSelector) -> Expression:
    return RangeSelector(_selector(node.vector_selector), node.range // timedelta(milliseconds=1))


def _call(node: parser.Call) -> Expression:
    return Call(node.func.name, tuple(_read(argument) for argument in node.args))


def _aggregation(node: parser.AggregateExpr) -> Expression:
    modifier = node.modifier
    return Aggregation(
        operator=str(node.op),
        operand=_read(node.expr),
        parameter=None if node.param is None else _read(node.param),
        labels=tuple(modifier.labels) if modifier else (),
        without=modifier is not None and modifier.type == parser.AggModifierType.Without,
    )


def _binary(node: parser.BinaryExpr) -> Expression:
    left, right, modifier = _read(node.lhs), _read(node.rhs), node.modifier
    if modifier is None:
        return Binary(str(node.op), left, right)
    fill = modifier.fill_values
    if fill.lhs is not None or fill.rhs is not None:
        raise UnsupportedError("fill")
    matching = modifier.matching
    return Binary(
        operator=str(node.op),
        left=left,
        right=right,
        labels=tuple(matching.labels) if matching else (),
        ignoring=matching is None or matching.type == parser.LabelModifierType.Exclude,
        as_bool=modifier.return_bool,
        many=_many(modifier.card),
        copied=tuple(modifier.group_labels or ()),
    )


def _many(cardinality: parser.VectorMatchCardinality) -> str:
    # The parser's enumerations cannot be keys of a dictionary.
    if cardinality == parser.VectorMatchCardinality.ManyToOne:
        return "left"
    return "right" if cardinality == parser.VectorMatchCardinality.OneToMany else ""


_READERS: dict[type, Callable[..., Expression]] = {
    parser.NumberLiteral: _number,
    parser.StringLiteral: _text,
    parser.ParenExpr: _paren,
    parser.UnaryExpr: _negation,
    parser.VectorSelector: _selector,
    parser.MatrixSelector: _range,
    parser.Call: _call,
    parser.AggregateExpr: _aggregation,
    parser.BinaryExpr: _binary,
}

_NAMES: dict[type, str] = {parser.SubqueryExpr: "subqueries"}
