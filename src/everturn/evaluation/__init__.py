"""Single prompts: evaluate one, keep a session of typed slices, save checkpoints and resume from them."""
