"""How agents use their tools, what they spend and where they struggle: over all agents, without any content.

One module per question. Each function takes the store first and calls `counts.catch_up` before it answers; `counts` reads
totals, or sums over a scope, and `cost` prices tokens by dated list prices: a missing price is reported, never guessed.
"""
