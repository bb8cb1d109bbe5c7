"""Rebuilds the encoder in INT8: candidates measured on held-out questions, the fastest that passes kept."""
