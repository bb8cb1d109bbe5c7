"""The log pyramid: from bytes to events, one a rule, with their times, counts and places."""
