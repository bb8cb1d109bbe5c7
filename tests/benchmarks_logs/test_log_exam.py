"""The log exam itself: complete, apart from the program, repeatable, and scored as its page says."""

from __future__ import annotations

import ast
import gzip
import os
import random
import sys
import zlib
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.log_accuracy_score import Found, Truth, class_scores, figures, judge
from benchmarks.log_corpus import compose as composing
from benchmarks.log_corpus import formats
from benchmarks.log_corpus.compose import Expected, Wish, compose
from benchmarks.log_corpus.damage import damage, encode, packed
from benchmarks.log_corpus.formats import PROGRAMS
from benchmarks.log_corpus.formats_host import ALL_WRITERS
from benchmarks.log_corpus.records import Signature, load_chatter, load_signatures, parse_record
from benchmarks.log_corpus.values import Drawn, Template
from benchmarks.log_corpus.wrappers import WRAPPERS, Wrapper

FOLDER = Path(composing.__file__).parent
ALL = load_signatures("signatures", "sealed", "traps")
SECOND = load_signatures("sealed2")
THIRD = load_signatures("sealed3")
FOURTH = load_signatures("sealed4")
FIFTH = load_signatures("sealed5")
SIXTH = load_signatures("sealed6")
HAPPENING = [one for one in ALL if not one.benign]
BEGIN_S = 1_790_000_000.0


def scene_of(signature: Signature, seed: int = 1, outermost: str = "") -> composing.Scene:
    wish = Wish((signature.program,), 20, (signature,), (), outermost)
    return compose(random.Random(seed), wish, BEGIN_S, 3600.0)


def test_the_exam_shares_no_code_with_the_program() -> None:
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.startswith("latencydoctor") for name in names), path


def test_it_is_large_enough_and_a_part_of_it_is_sealed() -> None:
    assert len(HAPPENING) >= 100
    assert 0.25 < sum(one.sealed for one in HAPPENING) / len(HAPPENING) < 0.45


def test_every_benign_trap_of_the_reference_is_there() -> None:
    covered = {one.trap for one in ALL}
    assert set(range(1, 41)) <= covered


@pytest.mark.parametrize(
    ("look", "before"),
    [(SECOND, ALL), (THIRD, (*ALL, *SECOND)), (FOURTH, (*ALL, *SECOND, *THIRD)), (FIFTH, (*ALL, *FOURTH))],
    ids=["second", "third", "fourth", "fifth"],
)
def test_a_further_look_covers_many_classes_and_has_harmless_lines_of_its_own(
    look: tuple[Signature, ...], before: tuple[Signature, ...]
) -> None:
    happening = [one for one in look if not one.benign]
    assert len(happening) >= 40
    assert len({one.classes[0] for one in happening}) >= 25
    assert len(look) - len(happening) >= 30
    assert {one.id for one in look}.isdisjoint(one.id for one in before)


@pytest.mark.parametrize("signature", [*ALL, *SECOND, *THIRD, *FOURTH, *FIFTH, *SIXTH], ids=lambda one: one.id)
def test_every_signature_can_be_said_by_its_program(signature: Signature) -> None:
    assert signature.program in PROGRAMS
    assert all(not record.form or record.form in ALL_WRITERS for record in signature.records)
    scene = scene_of(signature)
    low, high = scene.expected[0].count
    assert 1 <= low <= high


def test_every_program_chats() -> None:
    assert set(load_chatter()) == set(PROGRAMS)


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda one: one.name)
def test_every_wrapper_can_be_asked_for(wrapper: Wrapper) -> None:
    vllm = next(one for one in HAPPENING if one.program == "vllm")
    assert wrapper.name in scene_of(vllm, outermost=wrapper.name).stack


def test_the_same_seed_makes_the_same_file() -> None:
    one, other = (encode(scene_of(HAPPENING[0], seed=7).lines) for _ in range(2))
    assert one == other
    assert one != encode(scene_of(HAPPENING[0], seed=8).lines)


def test_damage_and_packing_spare_what_happens() -> None:
    signature = next(one for one in HAPPENING if one.id == "nginx-upstream-timed-out")
    for seed in range(60):
        rng = random.Random(seed)
        scene = scene_of(signature, seed)
        damage(rng, scene.lines, scene.busy, scene.stack)
        _, files = packed(rng, scene.lines, scene.busy)
        whole = b"".join(_unpacked(name, data) for name, data in files.items())
        assert whole.count(b"upstream timed out") == scene.expected[0].count[0]


def _unpacked(name: str, data: bytes) -> bytes:
    if name.endswith(".zst"):
        unpacked: bytes = import_module(zstd_name()).decompress(data)
        return unpacked
    if not name.endswith(".gz"):
        return data
    found = b""
    while data:
        inner = zlib.decompressobj(wbits=31)
        found += inner.decompress(data)
        data = inner.unused_data
    return found


def zstd_name() -> str:
    return "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def test_a_clock_that_is_set_back_moves_what_is_told() -> None:
    place = formats.Place(random.Random(1), 0, step=(100.0, 30.0))
    assert [place.told(at_s) for at_s in (99.0, 100.0, 131.0)] == [99.0, 70.0, 101.0]


def test_values_are_kept_where_they_are_named() -> None:
    drawn = Drawn(random.Random(1))
    first, again = Template("<k=n:1:9> <k> <not a slot> <id_unknown>").render(drawn).split(" ", 1)
    assert again == f"{first} <not a slot> <id_unknown>"
    with pytest.raises(LookupError):
        Template("<m>").render(Drawn(random.Random(1)))


def test_a_record_without_a_head_is_refused() -> None:
    with pytest.raises(ValueError, match="no head"):
        parse_record("just text", "here")


def truth(*expected: Expected, traps: tuple[Signature, ...] = (), lines: int = 1000) -> Truth:
    return Truth(expected, traps, lines, ("nginx",), (), "none", "plain")


def expects(identity: str, count: int = 2, starts_s: tuple[float, ...] = (10.0,)) -> Expected:
    return Expected(next(one for one in HAPPENING if one.id == identity), (count, count), starts_s)


def found(rule: str, severity: str = "ERROR", count: int = 2, first_s: float | None = 10.4) -> Found:
    return Found(rule, severity, count, first_s, "")


def test_what_is_found_in_number_and_time_is_right() -> None:
    score = figures([judge(truth(expects("nginx-refused")), [found("proxy_connect")])])
    assert score["macro_f1"] == score["event_count_exact"] == score["start_within_1s"] == 1.0


def test_a_wrong_number_and_a_late_start_are_told_apart() -> None:
    score = figures([judge(truth(expects("nginx-refused")), [found("proxy_connect", count=3, first_s=12.0)])])
    assert (score["macro_f1"], score["event_count_exact"], score["start_within_1s"]) == (1.0, 0.0, 0.0)


def test_a_missed_class_and_a_false_one_both_count() -> None:
    judged = [judge(truth(expects("nginx-refused")), [found("gpu_oom", "CRITICAL", count=4)])]
    scores = class_scores(judged)
    assert (scores["proxy_connect"].missed, scores["gpu_oom"].false) == (1, 1)
    assert figures(judged)["macro_f1"] == 0.0
    assert figures(judged)["false_critical_per_million"] == 4000.0


def test_information_and_unknown_loud_lines_are_no_alarms() -> None:
    judged = judge(truth(), [found("benign_thing", "INFO"), found("unclassified")])
    assert not judged.false
    assert judged.unclassified == 1


def test_classes_that_do_no_harm_beside_another_are_excused() -> None:
    signature = next(one for one in HAPPENING if one.id == "vllm-engine-memory")
    expected = Expected(signature, (1, 1), ())
    judged = judge(truth(expected), [found("gpu_oom", "CRITICAL", count=1), found("engine_dead", "CRITICAL", count=1)])
    assert not judged.false
    assert judged.outcomes[0].exact


def test_gzip_of_the_exam_is_gzip() -> None:
    for seed in range(40):
        scene = scene_of(HAPPENING[3], seed)
        name, files = packed(random.Random(seed), scene.lines, scene.busy)
        if name == "gz":
            assert gzip.decompress(files["server.log.gz"]) == encode(scene.lines)


def test_a_log_says_the_same_however_it_was_rotated(tmp_path: Path) -> None:
    from benchmarks.log_accuracy import read

    rng = random.Random(11)
    chosen = [one for one in HAPPENING if one.program in ("vllm", "torchserve", "kernel", "nginx")]
    for number in range(12):
        program = ("vllm", "torchserve", "kernel", "nginx")[number % 4]
        shown = tuple(rng.sample([one for one in chosen if one.program == program], 3))
        scene = compose(random.Random(number), Wish((program,), 60, shown), BEGIN_S, 7200.0)
        lines = encode(scene.lines).splitlines(keepends=True)
        cuts = sorted(rng.sample(range(1, len(lines)), 3))
        folders = [tmp_path / f"{number}-{name}" for name in ("whole", "rotated")]
        files = [{"x.log": lines}, {}]
        for age, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(lines)], strict=True)):
            files[1]["x.log" if age == 3 else f"x.log.{3 - age}"] = lines[begin:end]
        for folder, found in zip(folders, files, strict=True):
            folder.mkdir()
            for name, part in found.items():
                (folder / name).write_bytes(b"".join(part))
                os.utime(folder / name, (scene.lines[-1][0] + 60,) * 2)
        whole, rotated = (read(str(folder)) for folder in folders)
        assert rotated == whole, shown
