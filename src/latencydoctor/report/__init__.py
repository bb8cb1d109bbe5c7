"""Diagnosis and plan to text for people and machines."""
