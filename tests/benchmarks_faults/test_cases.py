"""Case files are checked strictly, and cases are what they say to be."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest
import yaml

import benchmarks.faults
from benchmarks.faults import Case, CaseError, load_cases, simulate
from benchmarks.faults.case_files import load_case
from benchmarks.faults.simulator.knobs import DEFAULTS, KNOBS, Engine
from benchmarks.faults.simulator.timeline import ONSET_S

FOLDER = Path(benchmarks.faults.__file__).parent
CASES = {case.id: case for case in load_cases()}
MINIMAL = {
    "id": "case", "title": "A title", "author": "informed", "healthy": False, "cause": "saturation", "symptoms": [],
    "do_not_scale": False, "engines": ["triton"], "changes": {"load_rps": 20}, "confounder": {"gpu_spin": 1},
}  # fmt: skip


def written(folder: Path, document: object) -> Path:
    path = folder / "case.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_case_says_what_happens_when(tmp_path: Path) -> None:
    setup = {"setup": {"load_rps": 3}, "per_engine": {"triton": {"setup": {"load_rps": 4}, "past": {"c": 5}}}}

    case = load_case(written(tmp_path, {**MINIMAL, **setup}))

    assert case.setup["triton"] == {"load_rps": 4}
    assert case.past["triton"] == {"c": 5}
    spin, load = case.changes["triton"]
    assert (spin.knob, spin.at_s) == ("gpu_spin", -math.inf)
    assert (load.knob, load.to, load.at_s) == ("load_rps", 20, ONSET_S)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"coause": "x"}, "unknown: coause"),
        ({"changes": {"load_rsp": 20}}, "changes.load_rsp: no such knob"),
        ({"changes": {"load_rps": "many"}}, "changes.load_rps: must be a number"),
        ({"changes": {"load_rps": True}}, "must be a number"),
        ({"changes": {"load_rps": {"at_s": 3}}}, "`to` missing"),
        ({"changes": {"load_rps": {"to": 3, "at_s": 9000}}}, "after the range's end"),
        ({"changes": {"load_rps": {"to": 3, "att_s": 90}}}, "unknown: att_s"),
        ({"changes": [1]}, "changes: must be a mapping"),
        ({"engines": ["tritn"]}, "engines: some of triton, vllm, torchserve"),
        ({"engines": []}, "engines: some of"),
        ({"healthy": True}, "cause: a healthy case has none"),
        ({"healthy": "yes"}, "healthy: must be true or false"),
        ({"cause": None}, "cause: a healthy case has none"),
        ({"title": ""}, "title: must be a text"),
        ({"symptoms": "x"}, "symptoms: must be a list"),
        ({"exporters": ["dgcm"]}, "exporters: unknown: dgcm"),
        ({"id": "other"}, "id: differs from the file's name"),
        ({"per_engine": {"vlm": {}}}, "per_engine: unknown: vlm"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, changed: dict[str, object], says: str) -> None:
    with pytest.raises(CaseError) as refused:
        load_case(written(tmp_path, {**MINIMAL, **changed}))

    assert str(refused.value).startswith("case.yaml: ")
    assert says in str(refused.value)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="confounder, engines missing"):
        load_case(written(tmp_path, {key: MINIMAL[key] for key in MINIMAL if key not in {"confounder", "engines"}}))


@pytest.mark.parametrize("text", ["- 1\n", "a: [\n", ""])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(text)

    with pytest.raises(CaseError, match=r"case\.yaml"):
        load_case(path)


def test_there_are_enough_of_both_kinds() -> None:
    faults = [case for case in CASES.values() if not case.healthy]

    assert len(faults) >= 28
    assert sum(case.author != "informed" for case in faults) * 2 >= len(faults)
    assert len(CASES) - len(faults) >= 12


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_case_has_a_confounder(case: Case) -> None:
    usual = {engine: {change for change in case.changes[engine] if change.at_s != ONSET_S} for engine in case.engines}

    assert all(usual[engine] or case.past[engine] for engine in case.engines)


# One of each kind; `python -m benchmarks.faults.check` looks at all.
@pytest.mark.parametrize(
    ("name", "engine"),
    [("delay-too-long", "triton"), ("long-prompts", "vllm"), ("healthy-batch-one", "torchserve")],
)
def test_a_fault_is_an_incident_and_a_trap_is_none(name: str, engine: Engine) -> None:
    assert simulate(CASES[name], engine, 0).incident is not CASES[name].healthy


def test_the_readme_tells_every_knob() -> None:
    told = (FOLDER / "README.md").read_text(encoding="utf-8")

    for name, knob in KNOBS.items():
        special = [f"{engine} {values[name]:g}" for engine, values in DEFAULTS.items() if name in values]
        default = f"{knob.default:g}" + (f" ({', '.join(special)})" if special else "")
        assert f"| `{name}` | {knob.metadata['unit']} | {default} | {knob.metadata['acts_on']} |" in told


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_nothing_of_the_doctor_is_imported(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.split(".")[0] == "latencydoctor" for name in names)
