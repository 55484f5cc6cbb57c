"""The scene of three parallel calls in other people's systems; each program runs in an environment of its own."""
