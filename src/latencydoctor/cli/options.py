"""Options that several commands share, each spelt once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """Forms of an answer."""

    TEXT = "text"
    JSON = "json"


class ReportFormat(StrEnum):
    """Forms of a diagnosis."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


FormatOption = Annotated[Format, typer.Option("--format", help="For people, or for programs.")]


ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="Configuration file. \\[default: $LATENCYDOCTOR_CONFIG, ./latencydoctor.yaml, XDG]"),
]
ContentOption = Annotated[
    Path | None, typer.Option("--content", help="Folder holding rules/ and playbooks/ instead of the built-in ones.")
]
PrometheusOption = Annotated[str, typer.Option("--prometheus", metavar="URL", help="Prometheus to read from.")]
MetricsUrlOption = Annotated[
    list[str] | None,
    typer.Option("--metrics-url", metavar="URL", help="Metrics page to read where there is no Prometheus; repeatable."),
]
LogOption = Annotated[
    list[Path] | None, typer.Option("--log", metavar="PATH", help="Log file, folder or glob; repeatable.")
]
TritonOption = Annotated[str, typer.Option("--triton", metavar="HOST:PORT", help="Triton's gRPC address.")]
SelectorOption = Annotated[
    str, typer.Option("--selector", help="""Label matchers that pick the service, as 'namespace="prod"'.""")
]
ModelOption = Annotated[str, typer.Option("--model", help="The model, when there are several.")]
AtOption = Annotated[str, typer.Option("--at", help="As of this time (RFC 3339 or epoch). \\[default: now]")]
SinceOption = Annotated[str, typer.Option("--since", help="How far back to look, as 30m or 2h.")]
DeadlineOption = Annotated[str, typer.Option("--deadline", help="Answer within this time with what is there.")]
BundleOption = Annotated[
    Path | None, typer.Option("--bundle", help="Read what `diagnose --save` stored instead of live sources.")
]
