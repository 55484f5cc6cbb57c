"""Search: from what a person typed to ranked hits with excerpts. The index itself is in `store`."""
