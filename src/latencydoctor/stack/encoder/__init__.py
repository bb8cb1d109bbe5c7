"""The FAQ's sentence encoder: tokens in, best answer out. Used by the model in Triton and to measure accuracy."""
