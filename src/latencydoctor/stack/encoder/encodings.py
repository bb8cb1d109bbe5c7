"""Sentence embeddings of all FAQ texts, computed once with the real model and kept per user by content.

They serve two ends: the index that a question is compared with, and the simulated accelerator, which looks a known
question's embedding up instead of computing it again, so that a profile faster than this machine's CPU can be kept.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from latencydoctor.errors import KnownError
from latencydoctor.stack.encoder.onnx_model import Floats, Ints, OnnxEncoder
from latencydoctor.stack.encoder.tokenize import TOKENIZER_FILE, TextTokenizer
from latencydoctor.stack.files import clear_left

FORMAT = 1
BATCH = 16


def _silent(done: int, total: int, /) -> None:
    """The progress of whoever does not show any."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is encoded ahead: `index[i]` is a text of answer number `answers[i]`; `others` are known texts beside it."""

    index: tuple[str, ...]
    answers: tuple[int, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Encodings:
    """Embeddings of unit length: the index with its answer numbers, and the known token rows with theirs."""

    index_vectors: Floats
    index_answers: npt.NDArray[np.int32]
    known_ids: Ints
    known_vectors: Floats

    def nearest(self, vectors: Floats) -> tuple[npt.NDArray[np.int32], Floats]:
        """For each row of `vectors` the answer of the most similar index text, and the cosine to it."""
        cosines = vectors @ self.index_vectors.T
        best = np.argmax(cosines, axis=1)
        return self.index_answers[best], np.asarray(cosines[np.arange(len(best)), best], dtype=np.float32)


class LookupEncoder:
    """Encodes token rows: known ones are looked up, the others go through the real model."""

    def __init__(self, encodings: Encodings, model: Callable[[Ints, Ints], Floats]) -> None:
        self._model = model
        self._vectors = encodings.known_vectors
        self._rows = {row.tobytes(): number for number, row in enumerate(encodings.known_ids)}

    def __call__(self, ids: Ints, mask: Ints) -> Floats:
        """Embeddings of unit length, [n, EMBEDDING_WIDTH]."""
        rows = np.array([self._rows.get(row.tobytes(), -1) for row in ids])
        vectors: Floats = self._vectors[rows]
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            vectors[unknown] = self._model(ids[unknown], mask[unknown])
        return vectors


def compute(
    corpus: Corpus,
    tokenizer: TextTokenizer,
    encode: Callable[[Ints, Ints], Floats],
    progress: Callable[[int, int], None] = _silent,
) -> Encodings:
    """Encodes every text of `corpus`; `progress` is told how many token rows are done, of how many."""
    index = tokenizer.batch(corpus.index)
    rows = list(dict.fromkeys([*index, *tokenizer.batch(corpus.others)]))
    place = {row: number for number, row in enumerate(rows)}
    ids = np.array([row.ids for row in rows], dtype=np.int64)
    mask = np.array([row.mask for row in rows], dtype=np.int64)
    parts = []
    for start in range(0, len(rows), BATCH):
        parts.append(encode(ids[start : start + BATCH], mask[start : start + BATCH]))
        progress(min(start + BATCH, len(rows)), len(rows))
    vectors = np.concatenate(parts)
    return Encodings(
        index_vectors=vectors[[place[row] for row in index]],
        index_answers=np.array(corpus.answers, dtype=np.int32),
        known_ids=ids,
        known_vectors=vectors,
    )


def location(corpus: Corpus, model: Path, cache: Path) -> Path:
    """The file in the folder `cache` that holds, or would hold, the encodings of `corpus` by this model."""
    return cache / f"encodings-{_content_hash(corpus, model)}.npz"


def prepare(corpus: Corpus, model: Path, cache: Path, progress: Callable[[int, int], None] = _silent) -> Path:
    """The file with the encodings of `corpus` in the folder `cache`; computes it (seconds) when it is not there."""
    path = location(corpus, model, cache)
    if path.is_file():
        return path
    encoder = OnnxEncoder(model, threads=len(os.sched_getaffinity(0)))
    encodings = compute(corpus, TextTokenizer(), encoder, progress)
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    save(path, encodings)
    return path


def save(path: Path, encodings: Encodings) -> None:
    """Writes what `load` reads, whole or not at all. OSError passes."""
    clear_left(path.parent, ".*.tmp.npz")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp.npz")
    try:
        np.savez(
            temporary,
            index_vectors=encodings.index_vectors,
            index_answers=encodings.index_answers,
            known_ids=encodings.known_ids,
            known_vectors=encodings.known_vectors,
        )
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _content_hash(corpus: Corpus, model: Path) -> str:
    found = hashlib.sha256(f"{FORMAT}\n".encode())
    for path in (model, TOKENIZER_FILE):
        with path.open("rb") as stream:
            found.update(hashlib.file_digest(stream, "sha256").digest())
    texts: Sequence[object] = [*zip(corpus.answers, corpus.index, strict=True), *corpus.others]
    found.update("\n".join(map(repr, texts)).encode())
    return found.hexdigest()[:20]


def load(path: Path) -> Encodings:
    """Reads what `prepare` wrote; KnownError when the file is damaged."""
    try:
        with np.load(path, allow_pickle=False) as found:
            return Encodings(
                index_vectors=found["index_vectors"],
                index_answers=found["index_answers"],
                known_ids=found["known_ids"],
                known_vectors=found["known_vectors"],
            )
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise KnownError(
            f"{path} cannot be read: {error}", hint="Delete it; the next `latencydoctor stack up` makes it anew."
        ) from error
