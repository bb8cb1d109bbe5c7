"""Logs that other programs print, and logs that grow, through the real command. The programs stand for remote ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """#!{python}
import json, os, sys, time
with open({record!r}, "a") as file:
    file.write(json.dumps([sys.argv[0].rsplit("/")[-1], *sys.argv[1:]]) + "\\n")
sys.stdout.write({output!r})
sys.stdout.flush()
if "--follow" in sys.argv:
    time.sleep(0.5)
    sys.stdout.write({more!r})
    sys.stdout.flush()
sys.stderr.write({error!r})
sys.exit({status})
"""
KUBECTL_SAID = (
    "[pod/triton-0/server] 2026-11-30T07:20:24.100000000Z I1130 07:20:24.000000 1 a.cc:1] fine\n"
    "[pod/triton-0/server] 2026-11-30T07:20:25.100000000Z ERROR torch.OutOfMemoryError: CUDA out of memory. "
    "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 MiB is free.\n"
)
JOURNAL_SAID = (
    json.dumps(
        {
            "__REALTIME_TIMESTAMP": "1796023226000000",
            "PRIORITY": "3",
            "MESSAGE": "CUDA out of memory. Tried to allocate 2.00 GiB",
            "_SYSTEMD_UNIT": "triton.service",
        }
    )
    + "\n"
)


class Programs:
    """A folder of programs and what they were called with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._record = folder / "calls"

    def put(self, name: str, output: str, error: str = "", status: int = 0, more: str = "") -> None:
        path = self.folder / name
        path.write_text(
            PROGRAM.format(
                python=sys.executable, record=str(self._record), output=output, error=error, status=status, more=more
            )
        )
        path.chmod(0o755)

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self._record.read_text().splitlines()]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": str(self.folder)}


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    folder = tmp_path / "bin"
    folder.mkdir()
    return Programs(folder)


def run(programs: Programs, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latencydoctor", "logs", "--format", "json", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=programs.environment(), timeout=60)


def test_pods_by_selector_and_by_name(programs: Programs) -> None:
    programs.put("kubectl", KUBECTL_SAID)
    done = run(programs, "--kubectl", "app=triton", "--kubectl", "pod/-x", "--namespace", "ml", "--levels")
    assert done.returncode == 3, done.stderr
    found = json.loads(done.stdout)
    assert [(event["rule"], event["count"]) for event in found["events"]] == [("gpu_oom", 2)]
    assert [file["query"] for file in found["files"]] == ["kubectl:app=triton", "kubectl:pod/-x"]
    assert found["levels"] == {"CRITICAL": 0, "ERROR": 2, "WARNING": 0, "INFO": 2, "DEBUG": 0, "none": 0}
    common = ["kubectl", "logs", "--timestamps", "--prefix", "--all-containers", "--namespace=ml"]
    assert programs.calls() == [
        [*common, "--selector=app=triton", "--tail=-1", "--max-log-requests=50", "--ignore-errors", "--"],
        [*common, "--", "pod/-x"],
    ]


def test_the_journal_of_a_unit_since_a_time(programs: Programs) -> None:
    programs.put("journalctl", JOURNAL_SAID)
    done = run(programs, "--journal", "--user", "--since", "2026-11-30T07:00:00Z", "--until", "1796100000")
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["events"][0]["rule"] == "gpu_oom"
    assert programs.calls() == [
        [
            "journalctl",
            "--output=json",
            "--no-pager",
            "--unit=--user",
            "--since=@1796022000",
            "--until=@1796100000",
            "--",
        ]
    ]


def test_files_and_live_logs_are_one_pyramid(programs: Programs, tmp_path: Path) -> None:
    programs.put("kubectl", KUBECTL_SAID)
    programs.put("journalctl", JOURNAL_SAID, "no such unit", 1)
    (tmp_path / "a.log").write_text(KUBECTL_SAID.replace("triton-0", "triton-1").replace(":25.1", ":20.1"))
    done = run(programs, str(tmp_path / "a.log"), "--kubectl", "app=triton", "--journal", "triton", "--levels")
    assert done.returncode == 3, done.stderr
    found = json.loads(done.stdout)
    assert [(event["rule"], event["count"]) for event in found["events"]] == [("gpu_oom", 3)]
    assert found["events"][0]["place"].endswith("a.log:2"), "the earliest line is shown, wherever it stands"
    assert [file["query"].rpartition("/")[2] for file in found["files"]] == [
        "a.log",
        "kubectl:app=triton",
        "journal:triton",
    ]
    assert [gap["detail"] for gap in found["gaps"]] == ["journal:triton: no such unit"]
    assert sum(found["levels"].values()) == 5


def test_a_program_that_is_missing_is_told_before_files_are_read(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("fine\n")
    done = run(programs, str(tmp_path / "a.log"), "--kubectl", "app=x")
    assert (done.returncode, done.stdout) == (1, "")
    assert "kubectl is not installed here" in done.stderr


def test_a_program_that_complains_leaves_a_gap(programs: Programs) -> None:
    programs.put("kubectl", "", 'Error from server (NotFound): pods "x" not found\nmore\n', 1)
    done = run(programs, "--kubectl", "pod/x")
    assert done.returncode == 4
    assert (
        json.loads(done.stdout)["gaps"][0]["detail"]
        == 'kubectl:pod/x: Error from server (NotFound): pods "x" not found'
    )


def test_what_a_program_complains_of_holds_no_secrets_and_no_colours(programs: Programs) -> None:
    programs.put("kubectl", "", "error: \x1b[31mUnauthorized\x1b[0m for https://ann:hunter-and-more@host:6443\n", 1)
    done = run(programs, "--kubectl", "pod/x")
    detail = json.loads(done.stdout)["gaps"][0]["detail"]
    assert "Unauthorized" in detail
    assert "hunter" not in done.stdout + done.stderr
    assert detail.isprintable()


@pytest.mark.parametrize("arguments", [["--kubectl", "app=x"], ["--journal", "x"], ["--follow", "--journal", "x"]])
def test_a_program_that_is_not_there_is_one_line(programs: Programs, arguments: list[str]) -> None:
    done = run(programs, *arguments)
    assert done.returncode == 1
    assert "is not installed here" in done.stderr.splitlines()[0]
    assert "| latencydoctor logs -" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["--namespace", "x", "a.log"], ["--kubectl", " "]])
def test_nothing_named_is_a_usage_error(programs: Programs, arguments: list[str]) -> None:
    assert run(programs, *arguments).returncode == 2


def test_live_logs_are_followed_to_their_end(programs: Programs) -> None:
    programs.put("kubectl", KUBECTL_SAID, more=KUBECTL_SAID.replace("07:20:2", "07:20:3"))
    programs.put("journalctl", JOURNAL_SAID, "No journal files were found.\n", 1)
    done = run(programs, "--kubectl", "app=triton", "--journal", "triton", "--follow")
    assert done.returncode == 3, done.stderr
    *events, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["rule"] for event in events] == ["gpu_oom"] * 3
    assert summary["events"][0]["count"] == 3
    assert summary["gaps"][0]["detail"] == "journal:triton: No journal files were found."
    assert sorted(call[0] for call in programs.calls()) == ["journalctl", "kubectl"]
    assert all("--follow" in call for call in programs.calls())


def test_a_growing_file_is_told_of_line_by_line_and_summed_up_on_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("fine\n")
    command = [sys.executable, "-m", "latencydoctor", "logs", "--follow", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
    assert process.stdout is not None
    with path.open("a") as file:
        file.write("2026-11-30T07:20:26Z ERROR CUDA out of memory. Tried to allocate 2.00 GiB\n")
    line = process.stdout.readline()
    assert "CRITICAL gpu_oom" in line
    assert "a.log:2" in line
    spent_before_s = spent_s(process.pid)
    time.sleep(1.0)
    assert spent_s(process.pid) - spent_before_s < 0.2, "waiting costs next to nothing"
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=30)
    assert process.returncode == 3, errors
    assert "CRITICAL gpu_oom" in rest


def spent_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


OOM_AT = "{} ERROR CUDA out of memory. Tried to allocate 2.00 GiB\n"


def test_to_follow_up_to_a_time_that_is_past_is_to_read_what_is_there(programs: Programs, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(OOM_AT.format("2026-11-30T07:20:26Z") + OOM_AT.format("2026-11-30T09:20:26Z"))
    programs.put("kubectl", KUBECTL_SAID)
    done = run(programs, "--follow", "--until", "2026-11-30T08:00:00Z", str(path), "--kubectl", "app=triton")
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["events"][0]["count"] == 2
    assert all("--follow" not in call for call in programs.calls())


def test_following_ends_at_a_time_that_is_yet_to_come(programs: Programs, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(OOM_AT.format("2026-11-30T07:20:26Z"))
    ends_s = time.time() + 3
    read_end, write_end = os.pipe()
    # Standard input stays open and the file is there: neither ends by itself.
    command = [sys.executable, "-m", "latencydoctor", "logs", "--follow", "--until", f"{ends_s}", str(path), "-"]
    done = subprocess.run(command, stdin=read_end, capture_output=True, text=True, timeout=60)
    os.close(read_end)
    os.close(write_end)
    assert done.returncode == 3, done.stderr
    assert time.time() >= ends_s
    assert "gpu_oom" in done.stdout
