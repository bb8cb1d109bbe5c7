"""Builds the encoder in INT8 in the user's cache: the fastest candidate whose loss of accuracy is small for certain.

What is served is what is measured: the index keeps the embeddings that the FP32 model made of it once, only questions
go through the smaller model. A question is measured alone and among others, because dynamic quantisation takes its
range from the whole batch; the worse of the two counts.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from latencydoctor.errors import KnownError
from latencydoctor.stack import int8_build
from latencydoctor.stack.encoder import encodings
from latencydoctor.stack.encoder.encodings import Encodings
from latencydoctor.stack.encoder.onnx_model import Ints, OnnxEncoder
from latencydoctor.stack.encoder.tokenize import TextTokenizer
from latencydoctor.stack.faq_entries import FaqEntry, load_entries
from latencydoctor.stack.files import clear_left
from latencydoctor.stack.quantise import speed
from latencydoctor.stack.quantise.accuracy import Loss, compare, refusal
from latencydoctor.stack.quantise.recipes import FOR_CPU, Recipe
from latencydoctor.stack.quantise.sheet import SHEET_FILE, Build, Trial, dump
from latencydoctor.stack.versions import ENCODER_FILE, ENCODINGS_FILE, MODEL_SOURCE, SHELL_FILE

BATCH = 16
SEED = 20
"""Of the order in which held-out questions meet in a batch."""

_SCRATCH = ".int8-"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sample:
    """Questions as tokens, with the number of each one's right answer."""

    ids: Ints
    mask: Ints
    answers: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Subject:
    """The model to rebuild, what calibrates it, and what it is measured on. The two samples share no question."""

    model: Path
    encodings: Encodings
    calibration: Sample
    held_out: Sample


def subject(model: Path, known: Encodings, entries: Sequence[FaqEntry] | None = None) -> Subject:
    """The bundled encoder with the FAQ's questions: calibrated on those of the index, measured on the held-out."""
    faq = load_entries() if entries is None else entries
    return Subject(
        model,
        known,
        _sample([(number, text) for number, entry in enumerate(faq) for text in entry.indexed]),
        _sample([(number, text) for number, entry in enumerate(faq) for text in entry.held_out]),
    )


def _sample(questions: Sequence[tuple[int, str]]) -> Sample:
    tokens = TextTokenizer().batch([text for _, text in questions])
    return Sample(
        np.array([one.ids for one in tokens], dtype=np.int64),
        np.array([one.mask for one in tokens], dtype=np.int64),
        np.array([number for number, _ in questions], dtype=np.int32),
    )


def build(subject: Subject, cache: Path, tell: Tell, recipes: Sequence[Recipe] = FOR_CPU) -> Build:
    """Tries every recipe and puts the fastest that passes into the cache; KnownError when none passes.

    Takes about a minute of one core. Only the folder named by `int8_build` is written, whole or not at all.
    """
    target = int8_build.location(subject.model, cache)
    with _scratch(cache) as folder:
        trials: dict[Path, Trial] = {}
        for recipe in recipes:
            made = folder / f"{len(trials)}.onnx"
            trials[made] = tried(recipe, made, subject, tell)
        passed = [made for made, trial in trials.items() if not trial.refused]
        if not passed:
            told = "; ".join(f"{trial.recipe}: {trial.refused}" for trial in trials.values())
            raise KnownError(f"no INT8 build passes, nothing was kept: {told}", hint="Stay with fp32.")
        best = max(passed, key=lambda made: trials[made].speedup_b1)
        name, vnni = speed.cpu()
        found = Build(
            inputs=int8_build.inputs_digest(subject.model, cache),
            model_bytes=subject.model.stat().st_size,
            kept=trials[best],
            others=tuple(trial for made, trial in trials.items() if made != best),
            cpu=name,
            vnni=vnni,
        )
        _assemble(folder / "build", best, subject, found)
        _put(folder / "build", target)
    return found


def tried(recipe: Recipe, made: Path, subject: Subject, tell: Tell) -> Trial:
    """One candidate, built and measured. What is refused for its accuracy is not timed."""
    tell(f"{recipe.name}: building from {len(subject.calibration.ids)} questions")
    recipe.build(subject.model, made, subject.calibration.ids, subject.calibration.mask)
    tell(f"{recipe.name}: measuring on {len(subject.held_out.ids)} held-out questions")
    loss = measured_loss(made, subject)
    refused = refusal(loss)
    timings: tuple[speed.Timing, ...] = ()
    if not refused:
        tell(f"{recipe.name}: timing")
        timings = speed.compare(subject.model, made, subject.held_out.ids, subject.held_out.mask)
    trial = Trial(recipe.name, made.stat().st_size, loss, timings, refused)
    tell(f"{recipe.name}: {refused or f'passes, {trial.speedup_b1:.2f} times faster alone'}")
    return trial


def measured_loss(made: Path, subject: Subject) -> Loss:
    """What the candidate loses against the model before, alone or in batches, whichever is worse for certain."""
    before = _right(OnnxEncoder(subject.model), subject, BATCH)
    encoder = OnnxEncoder(made)
    found = [compare(before, _right(encoder, subject, size)) for size in (1, BATCH)]
    return max(found, key=lambda loss: loss.drop_upper_ratio)


def _right(encoder: OnnxEncoder, subject: Subject, size: int) -> npt.NDArray[np.bool_]:
    """Which held-out questions the encoder answers rightly, asked `size` at a time in an order of chance."""
    sample = subject.held_out
    order = np.random.default_rng(SEED).permutation(len(sample.ids))
    right = np.zeros(len(sample.ids), dtype=np.bool_)
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        answers, _ = subject.encodings.nearest(encoder(sample.ids[rows], sample.mask[rows]))
        right[rows] = answers == sample.answers[rows]
    return right


def _assemble(folder: Path, model: Path, subject: Subject, found: Build) -> None:
    """The version's folder as Triton will read it."""
    folder.mkdir()
    shutil.copyfile(MODEL_SOURCE / SHELL_FILE, folder / SHELL_FILE)
    shutil.copyfile(model, folder / ENCODER_FILE)
    known = subject.encodings
    encoder = OnnxEncoder(model)
    masks = (known.known_ids != 0).astype(np.int64)
    vectors = [encoder(known.known_ids[row : row + 1], masks[row : row + 1]) for row in range(len(masks))]
    encodings.save(
        folder / ENCODINGS_FILE,
        Encodings(known.index_vectors, known.index_answers, known.known_ids, np.concatenate(vectors)),
    )
    (folder / SHEET_FILE).write_text(dump(found), encoding="utf-8")


def _put(made: Path, target: Path) -> None:
    """A rename within one folder: whoever looks sees the whole build or none."""
    if target.is_dir():
        target.rename(made.with_name("old"))
    made.rename(target)


@contextmanager
def _scratch(cache: Path) -> Iterator[Path]:
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    clear_left(cache, f"{_SCRATCH}*")
    folder = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=cache))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
