"""An agent that survives its process: journal, leases, durable tool calls, the loop, and conversations of other loops."""
