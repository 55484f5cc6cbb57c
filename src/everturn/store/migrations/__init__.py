"""The numbered SQL steps of each engine, and the runner that applies them."""
