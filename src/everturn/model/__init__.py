"""What a conversation is. Data only: no input or output, no clock, no database.

`conversation` holds what a source reads (messages, blocks, calls), `archive` what a store keeps (rows), `words` the
closed vocabularies both use.
"""
