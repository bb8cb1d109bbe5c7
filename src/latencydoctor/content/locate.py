"""Finds the folders of content: `rules/` and `playbooks/`.

A folder the user names comes first, then a checkout (so that an editable install uses the files being edited, not a
stale copy), then the copy inside the wheel.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from latencydoctor.errors import ContentError, Location

PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class ContentRoot:
    """A folder that holds `rules/` and `playbooks/`; `origin` says which of the three ways found it."""

    path: Path
    origin: str

    @property
    def rules(self) -> Path:
        """The folder of log rules and dialects."""
        return self.path / "rules"

    @property
    def playbooks(self) -> Path:
        """The folder of decision trees."""
        return self.path / "playbooks"

    def shown(self, file: Path) -> str:
        """How messages and reports name a file: relative, so that they are the same on every machine."""
        return file.relative_to(self.path).as_posix() if self.origin != "named" else str(file)


def locate(named: Path | None = None, package: Path = PACKAGE) -> ContentRoot:
    """The content to use. `ContentError` when the named folder has no `rules/`, or no content exists at all."""
    if named is not None:
        if not (named / "rules").is_dir():
            raise ContentError(
                "there is no folder rules/ in it",
                hint="--content names a folder that holds rules/ and playbooks/.",
                location=Location(str(named)),
            )
        return ContentRoot(named, "named")
    checkout = package.parent.parent
    # A wheel may be installed into a tree that happens to have a rules/ folder: pyproject.toml tells them apart.
    if (checkout / "pyproject.toml").is_file() and (checkout / "rules").is_dir():
        return ContentRoot(checkout, "checkout")
    bundled = package / "_bundled"
    if (bundled / "rules").is_dir():
        return ContentRoot(bundled, "bundled")
    raise ContentError(
        "the rules that belong to the program are missing",
        hint="Install it again, or name a folder with --content.",
        location=Location(str(bundled)),
    )


def yaml_files(folder: Path) -> tuple[Path, ...]:
    """Every `*.yaml` below a folder, in a fixed order; names that start with `_` or `.` are left out."""
    found = (path for path in folder.rglob("*.yaml") if path.is_file())
    return tuple(sorted(path for path in found if not path.name.startswith(("_", "."))))
