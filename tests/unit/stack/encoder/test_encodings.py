from __future__ import annotations

import numpy as np

from latencydoctor.stack.encoder.encodings import Corpus, Encodings, LookupEncoder, compute
from latencydoctor.stack.encoder.onnx_model import Floats, Ints, unit_length
from latencydoctor.stack.encoder.tokenize import TextTokenizer

CORPUS = Corpus(
    index=("where is my parcel", "can i pay by card", "can i pay by credit card"),
    answers=(0, 1, 1),
    others=("where is my parcel", "do you take cards"),
)


def by_sum(ids: Ints, mask: Ints) -> Floats:
    """A stand-in for the encoder: a direction that depends on the tokens."""
    angle = (ids.sum(axis=1) * 0.001 + mask.sum(axis=1)).astype(np.float32)
    return np.asarray(np.stack([np.cos(angle), np.sin(angle)], axis=1), dtype=np.float32)


def encodings() -> Encodings:
    return compute(CORPUS, TextTokenizer(), by_sum)


def test_each_distinct_text_is_encoded_once() -> None:
    seen: list[tuple[int, int]] = []
    found = compute(CORPUS, TextTokenizer(), by_sum, lambda done, total: seen.append((done, total)))
    assert len(found.known_ids) == 4
    assert seen == [(4, 4)]
    assert found.index_answers.tolist() == [0, 1, 1]


def test_the_nearest_index_text_gives_the_answer() -> None:
    found = encodings()
    answers, scores = found.nearest(found.index_vectors)
    assert answers.tolist() == [0, 1, 1]
    np.testing.assert_allclose(scores, 1.0, atol=1e-5)


def test_known_tokens_are_looked_up_and_others_encoded() -> None:
    found, asked = encodings(), []

    def model(ids: Ints, mask: Ints) -> Floats:
        asked.append(len(ids))
        return by_sum(ids, mask)

    encode = LookupEncoder(found, model)
    rows = TextTokenizer().batch(["can i pay by card", "never heard of it", "do you take cards"])
    ids = np.array([row.ids for row in rows], dtype=np.int64)
    mask = np.array([row.mask for row in rows], dtype=np.int64)
    np.testing.assert_allclose(encode(ids, mask), by_sum(ids, mask), atol=1e-6)
    assert asked == [1]
    encode(ids[:1], mask[:1])
    assert asked == [1]


def test_vectors_are_brought_to_length_one() -> None:
    found = unit_length(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 0.0]], atol=1e-6)
