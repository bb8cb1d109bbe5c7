"""Secrets planted wherever people keep them, a whole incident gone through, and everything written looked through."""

from __future__ import annotations

import base64
import functools
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from latencydoctor.app.verify import Schedule
from latencydoctor.cli import wiring
from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.layout import Layout
from tests.contract.strangers import Asked, Stranger, stranger
from tests.e2e.program import here, run
from tests.e2e.test_changes import BROKEN, Target

pytestmark = [pytest.mark.stack, pytest.mark.slow]

SECRETS = {
    place: f"pl4nted-{place}-0f9b3c7a"
    for place in (
        "url",
        "bearer",
        "header",
        "password",
        "log",
        "logbearer",
        "logurl",
        "environment",
        "config",
        "server",
    )
}


def leaks(text: str) -> list[str]:
    """The places whose secrets are in a text, as they are, quoted, or as Basic credentials."""
    found = []
    for place, secret in SECRETS.items():
        basic = base64.b64encode(f"ann:{secret}".encode()).decode().rstrip("=")
        if any(form in text for form in (secret, quote(secret, safe=""), basic)):
            found.append(place)
    return found


@contextmanager
def guarded(prometheus: str, opens: str) -> Iterator[Stranger]:
    """The Prometheus behind a door that opens to an Authorization header; it repeats the one it does not like."""

    def answer(asked: Asked) -> None:
        told = asked.header("authorization")
        if told != opens:
            body = {"error": f"refused: Authorization: {told} token={SECRETS['server']}"}
            asked.reply(json.dumps(body).encode(), "403 Forbidden")
            return
        request = urllib.request.Request(prometheus + asked.path, asked.body.encode() or None)
        request.add_header("Content-Type", asked.header("content-type") or "application/x-www-form-urlencoded")
        try:
            with urllib.request.urlopen(request, timeout=10) as found:
                asked.reply(found.read(), f"{found.status} OK")
        except urllib.error.HTTPError as error:
            asked.reply(error.read(), f"{error.code} Refused")

    with stranger(answer) as server:
        yield server


@pytest.fixture
def target(live_stack: Endpoints, live_layout: Layout, tmp_path: Path) -> Iterator[Target]:
    found = Target(live_layout, live_stack, tmp_path / "plan.json")
    before = found.settings()
    found.put(replace(before, inference=replace(before.inference, batching=BROKEN)))
    yield found
    found.put(before)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verification without long windows: what it writes is the same."""

    def treatment(real: Callable[..., wiring.Treatment], *given: object, **named: object) -> wiring.Treatment:
        built = real(*given, **named)
        return replace(built, tools=replace(built.tools, schedule=Schedule(0.1, 0.5, 0.1)))

    monkeypatch.setattr(wiring, "treatment", functools.partial(treatment, wiring.treatment))


def by_url(url: str) -> tuple[str, str]:
    let_in = url.replace("://", f"://ann:{SECRETS['url']}@")
    return f"{{url: '{let_in}'}}", "url"


def by_bearer_and_header(url: str) -> tuple[str, str]:
    return f"{{url: '{url}', bearer_env: PROM_BEARER, tenant: {{header: X-Scope-OrgID, value_file: tenant}}}}", "bearer"


def planted(folder: Path, source: str, state: Path) -> None:
    """A configuration, the files it names, and a log."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 5))
    (folder / "latencydoctor.yaml").write_text(
        f"# the night shift's password is {SECRETS['config']}\n"
        f"sources: {{prometheus: {source}, logs: [app.log]}}\ntargets: {{bundled: {{state: '{state}'}}}}\n"
    )
    (folder / "tenant").write_text(SECRETS["header"])
    (folder / "app.log").write_text(
        f"{moment} ERROR CUDA out of memory password={SECRETS['log']} Authorization: Bearer {SECRETS['logbearer']}\n"
        f"{moment} ERROR CUDA out of memory https://ann:{SECRETS['logurl']}@registry/x\n"
    )


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("way", [by_url, by_bearer_and_header])
def test_planted_secrets_are_in_nothing_that_is_written(
    way: Callable[[str], tuple[str, str]], target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROM_BEARER", SECRETS["bearer"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRETS["environment"])
    planted_in, written_in = tmp_path / "planted", tmp_path / "written"
    planted_in.mkdir()
    written_in.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(written_in))
    _, place = way("")
    basic = "Basic " + base64.b64encode(f"ann:{SECRETS[place]}".encode()).decode()
    opens = f"Bearer {SECRETS['bearer']}" if place == "bearer" else basic
    said = ""
    with guarded(target.endpoints.prometheus, opens) as door:
        planted(planted_in, way(door.url)[0], target.layout.state)
        monkeypatch.setenv("LATENCYDOCTOR_CONFIG", str(planted_in / "latencydoctor.yaml"))
        plan = written_in / "plan.json"
        for words, codes in (
            (("config", "check"), (0,)),
            (("diagnose", "--save", "bundle.json", "--verbose"), (0, 3, 4)),
            (("diagnose", "--format", "json", "-o", "diagnosis.json"), (0, 3, 4)),
            (("diagnose", "--bundle", "bundle.json", "--format", "markdown", "-o", "report.md"), (0, 3, 4)),
            (("plan", "batch-floor", "-o", plan), (0,)),
            (("plan", "batch-floor", "--bundle", "bundle.json", "--format", "json"), (0,)),
            (("apply", plan, "--dry-run"), (0,)),
            (("apply", plan, "--yes"), (0, 4)),
            (("runs", "--format", "json"), (0,)),
            (("rollback", "--yes", "--force"), (0,)),
        ):
            ran = here(*words, cwd=written_in)
            assert ran.code in codes, ran.out + ran.err
            said += ran.out + ran.err
        for run_id in [path.stem for path in (target.layout.state / "journal").glob("*.jsonl")]:
            said += here("runs", "show", run_id, cwd=written_in).out
        # As a process of its own too, where nothing of this one's shields it.
        ran = run("diagnose", "--format", "json", cwd=written_in)
        said += ran.out + ran.err
        assert {asked.header("authorization") for asked in door.asked} == {opens}
        if place == "bearer":
            assert {asked.header("x-scope-orgid") for asked in door.asked} == {SECRETS["header"]}

    # A door that does not open answers with what it was sent.
    with guarded(target.endpoints.prometheus, "another") as door:
        planted(planted_in, way(door.url)[0], target.layout.state)
        for words in (("config", "check"), ("diagnose", "--save", "refused.json"), ("plan", "batch-floor")):
            ran = here(*words, cwd=written_in)
            assert "403" in ran.out + ran.err or ran.code == 0, ran
            said += ran.out + ran.err

    assert leaks(said) == []
    files = [path for folder in (written_in, target.layout.state) for path in folder.rglob("*") if path.is_file()]
    assert {"plan.json", "bundle.json", "report.md", "diagnosis.json"} <= {path.name for path in files}
    assert [(path.name, found) for path in files if (found := leaks(path.read_bytes().decode("latin-1")))] == []
    assert "CUDA out of memory" in (written_in / "bundle.json").read_text()


def test_the_search_finds_what_it_looks_for() -> None:
    basic = base64.b64encode(f"ann:{SECRETS['environment']}".encode()).decode()
    assert leaks(f"x {SECRETS['url']} {basic}") == ["url", "environment"]
