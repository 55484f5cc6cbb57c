"""The archive for agents: a server of the Model Context Protocol that reads and never writes.

`offers` is everything it can be asked, in plain values. Two ways lead to it: `stdio`, our own small loop that answers
within the first moments of its life, and `http`, which leaves the protocol to the official SDK.

Promises: what comes out of the archive is masked, framed as quoted data and kept to a budget; nothing is imported for a
tool before the tool is called; a missing, older or busy archive is an answer in words, never the end of the server.
"""
