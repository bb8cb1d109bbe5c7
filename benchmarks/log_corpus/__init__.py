"""A labelled exam for log readers, made from published formats and message shapes; see README.md.

It shares no code with the program it examines and knows none of its rules.
"""
