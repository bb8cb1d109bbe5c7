"""Frozen records that every stage shares; standard library only."""
