"""A small history written by us, to try everturn on where there is none: one folder per source, named like it."""
