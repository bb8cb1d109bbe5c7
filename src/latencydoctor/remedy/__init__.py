"""A diagnosis and settings to a plan, and the judgement afterwards; pure."""
