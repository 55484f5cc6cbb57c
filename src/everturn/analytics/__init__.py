"""How agents really use their tools, what they spend, where they struggle: over all agents, without a word of content.

    plane     brings the counts up to date (`catch_up`) and gives them, for everything or for a choice of sessions (`counts`)
    money     what tokens cost, by list prices with their dates; what has no price is said, never guessed
    …         one module per question; each takes the store first and calls `plane.catch_up` before it answers

The faces that questions use:

    plane.Scope(sessions=SessionFilter(…) | None, only=(ids…) | None, subagents=True)     which sessions to look at
    plane.catch_up(store) -> int                                                          sessions counted again
    plane.counts(store, scope, ("tool_total", "tool_path"), least=3) -> Counts            totals, or the sum over a choice
    plane.trails(store, scope) -> Iterator[(session id, Trail)]                           tool use, session by session
    plane.turns_of(trail) -> Iterator[(turn idx, list[Use])]                              and turn by turn
    plane.usage(store, scope), plane.activity(store, scope)                               by quarter of an hour
    plane.percentile(counts.times(tool), 0.95) -> ms                                      of a histogram
    money.load(path | None) -> Prices; money.cost(usage rows, prices) -> Cost             integer micro-dollars
"""
