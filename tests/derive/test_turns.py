"""Messages become turns, steps and paired calls, the same way in whatever pieces they arrive."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from everturn.derive.turns import grow_session, plain_name
from everturn.model.archive import Call, JournalTail, SessionGrowth, Step, Turn
from everturn.model.conversation import Block, CallEnd, CallStart, Message, TokenUsage


def prompt(text: str = "do it", at: int | None = None, origin: str = "human") -> Message:
    return Message("user", origin, at=at, blocks=(Block("text", text, "prompt"),), starts_turn=True)


def answer(
    provider: str = "msg_1", at: int | None = None, text: str = "done", usage: TokenUsage | None = None
) -> Message:
    return Message(
        "assistant",
        "model",
        at=at,
        provider_id=provider,
        model="m",
        blocks=(Block("text", text, "answer"),),
        usage=usage,
    )


def call(
    provider: str, call_id: str, at: int | None = None, name: str = "Read", kind: str = "read", path: str = ""
) -> Message:
    start = CallStart(call_id, name, kind, path)
    block = Block("call", f"{name} {path}", "tool_input", call=start)
    return Message("assistant", "model", at=at, provider_id=provider, blocks=(block,))


def result(call_id: str, at: int | None = None, error: bool = False, text: str = "ok") -> Message:
    end = CallEnd(call_id, error, "exit_status" if error else "")
    return Message("user", "tool", "result", at=at, blocks=(Block("result", text, "tool_output", result=end),))


def notice(kind: str = "notice") -> Message:
    return Message("system", "system", kind)


def whole(messages: list[Message]) -> SessionGrowth:
    return grow_session(JournalTail(), messages)[0]


def test_a_prompt_and_its_answer_are_one_turn() -> None:
    growth = whole([prompt(at=1000), answer(at=3000), prompt(at=9000), answer("msg_2", at=9500)])
    assert [(t.first_seq, t.last_seq, t.started, t.ended, t.starter) for t in growth.turns] == [
        (0, 1, 1000, 3000, "human"),
        (2, 3, 9000, 9500, "human"),
    ]
    assert [row.turn for row in growth.messages] == [0, 0, 1, 1]


def test_prompts_in_a_row_are_one_turn() -> None:
    growth = whole([prompt("first"), prompt("and also"), answer()])
    assert len(growth.turns) == 1
    assert growth.first_prompt == "first"
    assert growth.n_prompts == 2


def test_what_comes_before_the_first_prompt_belongs_to_its_turn() -> None:
    growth = whole([notice(), prompt(), answer()])
    assert [(t.first_seq, t.starter) for t in growth.turns] == [(0, "human")]


def test_an_answer_without_a_prompt_is_a_turn_that_nobody_started() -> None:
    growth = whole([answer(), prompt(), answer("msg_2")])
    assert [t.starter for t in growth.turns] == ["none", "human"]


def test_a_compaction_marks_the_turn_and_does_not_end_it() -> None:
    growth = whole([prompt(), answer(), notice("compaction"), answer("msg_2")])
    assert [(t.compacted, t.n_steps) for t in growth.turns] == [(1, 2)]


def test_an_interrupt_marks_the_turn() -> None:
    assert whole([prompt(), notice("interrupt")]).turns[0].interrupted == 1


def test_parallel_calls_share_a_position_even_when_results_lie_between() -> None:
    growth = whole(
        [
            prompt(),
            call("msg_1", "a", at=10),
            result("a", at=30),
            call("msg_1", "b", at=20),
            result("b", at=90, error=True),
            call("msg_2", "c", at=100),
            result("c", at=101),
        ]
    )
    assert [(c.call_id, c.step, c.batch, c.position, c.status, c.duration_ms) for c in growth.calls] == [
        ("a", 0, 0, 0, "ok", 20),
        ("b", 0, 1, 0, "error", 70),
        ("c", 1, 0, 1, "ok", 1),
    ]
    assert [s.n_calls for s in growth.steps] == [2, 1]
    assert (growth.turns[0].n_calls, growth.turns[0].n_errors, growth.turns[0].n_batches) == (3, 1, 2)


def test_several_calls_in_one_message_are_one_batch() -> None:
    blocks = tuple(Block("call", call=CallStart(name, name)) for name in "abc")
    growth = whole([prompt(), Message("assistant", "model", provider_id="m", blocks=blocks)])
    assert [(c.idx, c.batch) for c in growth.calls] == [(0, 0), (1, 1), (2, 2)]


def test_a_result_written_before_its_call_finds_it() -> None:
    growth = whole([prompt(), result("a", at=50), call("msg_1", "a", at=40)])
    assert [(c.seq, c.status, c.result_seq, c.duration_ms) for c in growth.calls] == [(2, "ok", 1, 10)]
    assert growth.dropped_calls == []


def test_a_result_whose_call_comes_in_a_later_piece_is_an_orphan_until_then() -> None:
    first, tail = grow_session(JournalTail(), [prompt(), result("a", error=True)])
    assert [(c.status, c.error_class) for c in first.calls] == [("orphan", "exit_status")]
    second, _ = grow_session(tail, [call("msg_1", "a")])
    assert second.dropped_calls == [(1, 0)]
    assert [(c.status, c.result_seq) for c in second.calls] == [("error", 1)]
    assert second.turns[0].n_errors == 1


def test_a_result_written_before_its_call_tells_what_the_call_touched() -> None:
    early = [prompt(), result("a"), call("msg_1", "a", path="src/a.py")]
    assert [(a.action, a.path, a.seq) for a in whole(early).artifacts] == [("read", "src/a.py", 2)]
    _, tail = grow_session(JournalTail(), early[:2])
    later, _ = grow_session(tail, early[2:])
    assert [(a.action, a.path, a.seq) for a in later.artifacts] == [("read", "src/a.py", 2)]
    assert whole([prompt(), result("a", error=True), call("msg_1", "a", path="src/a.py")]).artifacts == []


def test_a_call_id_used_twice_is_two_calls() -> None:
    growth = whole([prompt(), call("m1", "a"), result("a"), call("m2", "a"), result("a", error=True)])
    assert [c.status for c in growth.calls] == ["ok", "error"]


def test_an_error_that_comes_in_a_later_turn_is_counted_where_the_call_was() -> None:
    growth = whole([prompt(), call("m1", "a"), prompt(), result("a", error=True)])
    assert growth.stale_turns == [0]
    assert growth.turns[1].n_errors == 0


def test_tokens_of_a_response_are_counted_once_with_the_last_value() -> None:
    growth = whole(
        [
            prompt(),
            answer(usage=TokenUsage(10, 1, 5, 2)),
            answer(usage=TokenUsage(10, 7, 5, 2)),
            answer("msg_2", usage=TokenUsage(1, 1)),
        ]
    )
    assert [(s.tokens_in, s.tokens_out, s.tokens_cache_read, s.tokens_cache_write) for s in growth.steps] == [
        (10, 7, 5, 2),
        (1, 1, 0, 0),
    ]


def test_the_last_usage_of_a_response_counts_even_if_it_is_smaller() -> None:
    growth = whole(
        [prompt(), answer(usage=TokenUsage(90, 1)), answer(usage=TokenUsage(10, 7)), answer(usage=TokenUsage())]
    )
    assert [(step.tokens_in, step.tokens_out) for step in growth.steps] == [(10, 7)]


def test_a_response_taken_up_again_after_another_one_does_not_count_twice() -> None:
    used = TokenUsage(10, 7)
    growth = whole([prompt(), answer("m1", usage=used), answer("m2", usage=used), answer("m1", usage=used)])
    assert [s.tokens_out for s in growth.steps] == [7, 7, 0]


def test_an_error_shown_in_place_of_an_answer_is_no_step_but_ends_the_request() -> None:
    growth = whole([prompt(), Message("assistant", "system", "notice"), prompt(), answer()])
    assert [(t.n_steps, t.answered) for t in growth.turns] == [(0, 1), (1, 1)]


def test_files_are_noted_when_the_call_succeeded() -> None:
    messages = [
        prompt(),
        call("m1", "a", path="x.py"),
        result("a"),
        call("m1", "b", path="y.py"),
        result("b", error=True),
    ]
    assert [(a.action, a.path, a.turn, a.seq) for a in whole(messages).artifacts] == [("read", "x.py", 0, 1)]


def test_files_of_a_call_in_an_earlier_piece_are_found_through_its_arguments() -> None:
    _, tail = grow_session(JournalTail(), [prompt(), call("m1", "a", path="x.py")])
    growth, _ = grow_session(
        tail, [result("a")], start_of=lambda row: CallStart(row.call_id, row.name, row.kind, "x.py")
    )
    assert [a.path for a in growth.artifacts] == ["x.py"]


def test_each_block_is_indexed_under_its_field() -> None:
    both = Message(
        "assistant",
        "model",
        blocks=(Block("thinking", "hmm", "thinking"), Block("text", "yes", "answer"), Block("text", "no", "answer")),
    )
    assert whole([both]).index[0].texts == (None, "yes\nno", "hmm", None, None, None, None)


def test_a_name_that_is_a_sentence_does_not_enter_the_analytics() -> None:
    assert plain_name('Read "my secret"\n') == "(odd name)"
    assert plain_name("mcp__server__do-it") == "mcp__server__do-it"


MESSAGES = st.lists(
    st.one_of(
        st.builds(prompt, at=st.integers(0, 10**6)),
        st.builds(
            answer,
            st.sampled_from(["m1", "m2", "m3"]),
            st.integers(0, 10**6),
            usage=st.builds(TokenUsage, st.integers(0, 9), st.integers(0, 9)),
        ),
        st.builds(
            call, st.sampled_from(["m1", "m2", "m3"]), st.sampled_from("abc"), st.integers(0, 10**6), path=st.just("p")
        ),
        st.builds(result, st.sampled_from("abc"), st.integers(0, 10**6), st.booleans()),
        st.builds(notice, st.sampled_from(["notice", "compaction", "interrupt"])),
    ),
    max_size=30,
)


@given(MESSAGES, st.lists(st.integers(0, 30), max_size=4))
def test_pieces_give_the_same_rows_as_the_whole(messages: list[Message], cuts: list[int]) -> None:
    at_once = rows([whole(messages)])
    edges = [0, *sorted(min(cut, len(messages)) for cut in cuts), len(messages)]
    growths, tail = [], JournalTail()
    starts = {(seq, i): block.call for seq, m in enumerate(messages) for i, block in enumerate(m.blocks)}
    for first, last in pairwise(edges):
        growth, tail = grow_session(tail, messages[first:last], start_of=lambda row: starts[row.seq, row.idx])
        growths.append(growth)
    assert rows(growths) == at_once


def rows(growths: list[SessionGrowth]) -> tuple[object, ...]:
    """The tables as a store would hold them afterwards, counts of stale turns taken again from the calls."""
    turns: dict[int, Turn] = {}
    steps: dict[int, Step] = {}
    calls: dict[tuple[int, int], Call] = {}
    stale: set[int] = set()
    for growth in growths:
        turns |= {t.idx: t for t in growth.turns}
        steps |= {s.idx: s for s in growth.steps}
        for key in growth.dropped_calls:
            del calls[key]
        calls |= {(c.seq, c.idx): c for c in growth.calls}
        stale |= set(growth.stale_turns)
    for idx in stale:
        turns[idx].n_errors = sum(c.turn == idx and c.status == "error" for c in calls.values())
    return (
        [m for g in growths for m in g.messages],
        [turns[i] for i in sorted(turns)],
        [steps[i] for i in sorted(steps)],
        [calls[k] for k in sorted(calls)],
        sorted((a.seq, a.idx, a.n, a.action, a.path) for g in growths for a in g.artifacts),
        [i for g in growths for i in g.index],
        sum(g.n_prompts for g in growths),
    )
