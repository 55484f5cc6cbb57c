"""What everturn promises to reach, measured: `python -m benchmarks` prints every figure with its bar.

One module per subject (`accounting`, `ingest`, `memory`, `upkeep`, `asking`), each a generator of figures; `peers` runs
other archivers beside ours and `hotspots` tells where the time of an ingest goes. Commands are measured as real processes,
in a home that is nobody's. Needs a checkout: transcripts are made by `tests/transcripts.py`.
"""
