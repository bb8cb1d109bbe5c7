"""Codes and scales of an embedding table."""

from __future__ import annotations

import numpy as np

from latencydoctor.stack.quantise.embeddings import quantised_rows


def test_each_row_keeps_to_half_a_step_of_its_own_scale() -> None:
    table = np.random.default_rng(3).normal(size=(50, 16)).astype(np.float32)
    table[7] *= 1000  # a large row must not cost the others
    codes, scales = quantised_rows(table)
    assert codes.dtype == np.int8
    assert np.all(np.abs(codes * scales - table) <= scales / 2 + 1e-6)
    assert np.abs(scales[7]) > 100 * np.median(scales)


def test_a_row_of_zeros_stays_one() -> None:
    codes, scales = quantised_rows(np.zeros((2, 4), dtype=np.float32))
    assert not (codes * scales).any()
    assert np.isfinite(scales).all()
