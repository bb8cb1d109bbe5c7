"""Every point at which a run can die is listed: no change to a file, a lock or a server is made at another one.

Once by watching the shipped program do it, once by reading its source, for what the watched runs did not come by.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from latencydoctor.model.effects import Effect, unwatched

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "latencydoctor"
CHANGING = (
    PACKAGE / "journal.py",
    *sorted((PACKAGE / "targets").glob("*.py")),
    *sorted((PACKAGE / "app").glob("*.py")),
)

CALLS = {
    Effect.JOURNAL_FOLDER: ["os.mkdir"],
    Effect.JOURNAL_FOLDER_SYNC: ["os.fsync"],
    Effect.JOURNAL_FILE: ["open"],
    Effect.JOURNAL_CUT: ["os.truncate"],
    Effect.JOURNAL_WRITE: ["os.write"],
    Effect.JOURNAL_SYNC: ["os.fsync"],
    Effect.JOURNAL_ENTRY_SYNC: ["os.fsync"],
    Effect.LOCK_FILE: ["open"],
    Effect.LOCK_TAKE: ["fcntl.flock"],
    Effect.LOCK_NAME: ["os.pwrite", "os.truncate"],
    Effect.LOCK_CLEAR: ["os.truncate"],
    Effect.FILE_CLEAR: ["os.remove"],
    Effect.FILE_CREATE: ["open"],
    Effect.FILE_WRITE: ["os.write"],
    Effect.FILE_SYNC: ["os.fsync"],
    Effect.FILE_RENAME: ["os.rename"],
    Effect.FILE_ENTRY_SYNC: ["os.fsync"],
    Effect.FILE_REMOVE: ["os.remove"],
    Effect.FOLDER_TOUCH: ["os.utime"],
    Effect.VERSION_FOLDER: ["os.mkdir"],
    Effect.VERSION_PLACE: ["os.rename"],
    Effect.VERSION_WITHDRAW: ["os.rename"],
    Effect.VERSION_REMOVE: ["os.rmdir"],
    Effect.ASK_ADMIN: ["socket.connect"],
    Effect.ASK_CONTROLLER: ["socket.connect"],
    Effect.ASK_TRITON: ["grpc"],
    Effect.LOAD_MODEL: ["grpc"],
    Effect.ASK_ANSWERS: ["socket.connect"],
    Effect.WRITE_ANSWERS: ["socket.connect"],
    Effect.REMOVE_ANSWERS: ["socket.connect"],
    Effect.TARGET_FOLDER: ["os.mkdir"],
    Effect.ASK_TORCHSERVE: ["socket.connect"],
    Effect.REGISTER_VERSION: ["socket.connect"],
    Effect.SCALE_WORKERS: ["socket.connect"],
    Effect.SET_DEFAULT_VERSION: ["socket.connect"],
    Effect.UNREGISTER_VERSION: ["socket.connect"],
}
"""What each listed effect does, call for call."""


def recorded(folder: Path, *words: str) -> dict[str, object]:
    # What measures coverage writes files of its own in the processes that it looks at.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.fakes.effect_recorder", str(folder), *words],
        capture_output=True, text=True, timeout=120, cwd=ROOT, env=plain,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


@pytest.mark.stack
def test_what_a_run_changes_it_changes_at_the_listed_points(tmp_path: Path) -> None:
    told = recorded(tmp_path / "ward")
    assert told["outside"] == []
    assert told["inside"] == {effect.name: calls for effect, calls in CALLS.items()}
    assert set(CALLS) == set(Effect)


@pytest.mark.stack
def test_an_effect_that_is_not_listed_is_noticed(tmp_path: Path) -> None:
    assert recorded(tmp_path / "ward", "rogue")["outside"] == ["os.rename"]


CHANGERS = {
    "os": {
        "fsync", "fdatasync", "replace", "rename", "renames", "unlink", "remove", "mkdir", "makedirs", "rmdir",
        "removedirs", "ftruncate", "truncate", "write", "pwrite", "writev", "pwritev", "link", "symlink", "chmod",
        "fchmod", "chown", "fchown", "utime", "sendfile", "copy_file_range", "posix_spawn", "system", "kill",
    },
    "fcntl": {"flock", "lockf"},
    "socket": {"socket", "create_connection"},
}  # fmt: skip
"""Functions of the standard library that change something outside, by module."""

MODULES = {"shutil", "subprocess", "tempfile"}
"""Modules of which any function does."""

METHODS = {
    "mkdir", "rmdir", "touch", "unlink", "write_text", "write_bytes", "symlink_to", "hardlink_to", "chmod",
    "connect", "sendall", "sendto", "request", "urlopen",
    "InferenceServerClient", "load_model", "unload_model", "get_model_config", "infer",
}  # fmt: skip
"""Methods that do, of whatever object, and whoever speaks to a server."""

HARMLESS = {
    ("targets/holder.py", "_alive"): "signal 0 is no signal: it asks whether the process is there",
    ("targets/admin.py", "connect"): "http.client calls it from inside `request`",
    ("targets/triton_server.py", "_client"): "it connects with the first question, and that is an effect",
    ("targets/triton_server.py", "_ask"): "the thread of `load`, which waits for it as an effect",
    ("targets/controller_page.py", "_get"): "the executor is given those who call it, and calls them as an effect",
}


def _bare(call: ast.Call) -> bool:
    """Whether a call changes something outside, by what it calls."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in {"open", "InferenceServerClient", "urlopen"}
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    if owner == "os" and function.attr == "open":
        return "O_RDONLY" not in ast.unparse(call)
    return owner in MODULES or function.attr in CHANGERS.get(owner, METHODS)


def _name(call: ast.Call) -> str:
    function = call.func
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _is_effect(node: ast.AST) -> bool:
    """`effects(Effect.X)` or `….effects(Effect.X)`, X being listed."""
    if not isinstance(node, ast.Call) or _name(node).lstrip("_") != "effects" or len(node.args) != 1:
        return False
    owner, _, member = ast.unparse(node.args[0]).partition(".")
    return owner == "Effect" and member in Effect.__members__


def _calls(node: ast.AST, *, inside: bool) -> Iterator[tuple[ast.Call, bool]]:
    """Every call below the node, and whether it lies in an effect; functions within are looked at by themselves."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(child, ast.Call):
            yield child, inside
        within = inside or (
            isinstance(node, ast.With) and child in node.body and any(_is_effect(i.context_expr) for i in node.items)
        )
        yield from _calls(child, inside=within)


def _modules(tree: ast.Module) -> dict[str, str]:
    """Names that a file imports from this package, with the file each comes from, or is."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("latencydoctor"):
            place = (node.module or "").removeprefix("latencydoctor").replace(".", "/").lstrip("/")
            for alias in node.names:
                module = PACKAGE / place / f"{alias.name}.py"
                found[alias.asname or alias.name] = (
                    str(module.relative_to(PACKAGE)) if module.exists() else f"{place}.py"
                )
    return found


Place = tuple[str, str]
"""A file and a function in it."""


def _callee(call: ast.Call, path: str, modules: dict[str, str]) -> Place | None:
    """The function of this package that is called, as far as a reader can tell without running it."""
    function = call.func
    if isinstance(function, ast.Name):
        return modules.get(function.id, path), function.id
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        owner = function.value.id
        return (path if owner in ("self", "cls") else modules.get(owner, ""), function.attr)
    return None


def unlisted(sources: dict[str, str]) -> list[str]:
    """Functions that change something outside every effect, and are not only called inside one."""
    functions: dict[Place, list[tuple[bool, bool, Place | None]]] = {}
    for path, text in sources.items():
        tree = ast.parse(text)
        modules = _modules(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                calls = _calls(node, inside=False)
                functions[path, node.name] = [
                    (inside, _bare(call), _callee(call, path, modules)) for call, inside in calls
                ]
    guilty: set[Place] = set()
    while True:
        found = {
            place
            for place, calls in functions.items()
            if any(not inside and (bare or callee in guilty) for inside, bare, callee in calls)
        } - set(HARMLESS)
        if found == guilty:
            break
        guilty = found
    # Whoever calls a guilty function outside every effect is guilty itself, so it is enough to name the outermost.
    called = {
        callee
        for place, calls in functions.items()
        for inside, _, callee in calls
        if inside or (place in guilty and callee != place)
    }
    return sorted(f"{path}: {name}" for path, name in guilty - called)


def sources() -> dict[str, str]:
    return {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in CHANGING}


def test_the_source_changes_nothing_outside_a_listed_effect() -> None:
    assert unlisted(sources()) == []


@pytest.mark.parametrize(
    "more",
    [
        "def f(a, b):\n    os.replace(a, b)\n",
        "def f(d):\n    with suppress(OSError):\n        os.fsync(d)\n",
        "def f(self, p):\n    with self._effects(Effect.FILE_SYNC):\n        pass\n    p.write_text('x')\n",
        "def f(self, p):\n    with self._effects(Effect.NOT_LISTED):\n        os.unlink(p)\n",
        "def f(self, model):\n    self.client.load_model(model)\n",
        "def f(self):\n    return os.open('x', os.O_WRONLY | os.O_CREAT)\n",
        "class C:\n    def f(self):\n        g()\ndef g():\n    subprocess.run(['x'])\n",
    ],
)
def test_a_new_effect_in_the_source_is_noticed(more: str) -> None:
    assert unlisted({**sources(), "targets/new.py": more}) != []


def test_an_effect_that_passes_through_the_hook_is_not_complained_about() -> None:
    listed = "def f(self, p):\n    with self._effects(Effect.FILE_CLEAR), suppress(OSError):\n        g(p)\n"
    assert unlisted({**sources(), "targets/new.py": listed + "def g(p):\n    os.unlink(p)\n"}) == []


def test_the_hook_of_production_does_nothing() -> None:
    nothing = {id(unwatched(effect)) for effect in Effect}
    assert len(nothing) == 1
    held: AbstractContextManager[None] = unwatched(Effect.FILE_SYNC)
    with held, held:
        pass
