"""The archive for agents: a server of the Model Context Protocol that only reads.

`server` answers every method with plain values. Two transports use it: `stdio`, our own small loop that answers right after
the start, and `http`, which leaves the protocol to the official SDK.

Promises: everything from the archive is masked, framed as quoted data and kept within a budget; nothing is imported for a
tool before the tool is called; a missing, older or busy archive is an answer in words, never the end of the server.
"""
