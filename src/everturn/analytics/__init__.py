"""How agents use their tools, what they spend and where they struggle: over all agents, without any content.

    counts    brings the counts up to date (`catch_up`) and returns them for everything or for a scope (`read_counts`)
    cost      the cost of tokens by list prices with their dates; missing prices are reported, never guessed
    …         one module per question; each takes the store first and calls `catch_up` before it answers

The functions that questions use:

    counts.AnalyticsScope(sessions=SessionFilter(…) | None, only=(ids…) | None, subagents=True)     which sessions
    counts.catch_up(store) -> int                                                       sessions counted again
    counts.read_counts(store, scope, ("tool_total", "tool_path"), least=3)              totals, or the sum over a scope
    counts.trails(store, scope) -> Iterator[(session id, Trail)]                        tool use, session by session
    derive.trails.turns_of(trail) -> Iterator[(turn idx, list[Use])]                    and turn by turn
    counts.usage(store, scope), counts.activity(store, scope)                           by quarter of an hour
    counts.percentile(counted.times(tool), 0.95) -> ms                                  of a histogram
    cost.load_prices(path | None) -> Prices; cost.token_cost(rows, prices) -> Cost      integer micro-dollars
"""
