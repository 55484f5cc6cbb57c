"""The data model. Data only: no input or output, no clock, no database.

`conversation` holds what a source reads (messages, blocks, calls), `archive` the rows of a store, `analytics` the tables
of tool use, `vocabulary` the closed lists of words that all of them use.
"""
