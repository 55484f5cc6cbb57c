"""Wire formats: histories there and back, every cut of them repaired, and what looking at a request costs."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure, exact, show
from everturn.llm import anthropic_messages
from everturn.llm.history_repair import repair_history, with_call_id
from everturn.llm.history_rules import certain_violations, validate_request
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest
from everturn.loop.context import Sizes, assemble_context
from everturn.loop.request_prefix import digest_body
from tests.llm.histories import WIRES, cuts, messages_of, request, sent, taken_up

SEEDS = 150
_JUDGED = 40
_PER_1000 = 10.0  # ms
_JUDGE = Path(__file__).with_name("wires_judge.py")
_WORDS = "the parser reads a line of the file and returns its tokens when key or value are missing it raises".split()


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Round trips, cuts, histories sent in another format; then the time."""
    for wire in WIRES:
        yield exact(f"{wire}: there and back, not identical", _changed(wire), f"{SEEDS} histories")
        yield _cut(wire)
    for one in WIRES:
        others = [other for other in WIRES if other != one]
        wrong = [found for other in others for found in _sent_elsewhere(one, other)]
        yield exact(
            f"{one}: sent in another format, not valid or not whole",
            wrong,
            f"{SEEDS} histories to {len(others)} formats",
        )
    yield from _times()


def main() -> int:
    """The figures, and with `--judge` a verdict from outside, for which a package is installed and thrown away."""
    for figure in _judged() if "--judge" in sys.argv else figures(Corpora(Path())):
        show(figure, "--json" in sys.argv)
    return 0


def _changed(wire: str) -> Iterator[str]:
    name = "input" if wire == "responses" else "messages"
    for seed in range(SEEDS):
        body = request(wire, seed)
        messages = messages_of(wire, body)
        if json.dumps(sent(wire, messages, body)[name]) != json.dumps(body[name]):
            yield f"seed {seed}"
        if validate_request(wire, body) or repair_history(messages).messages != messages:
            yield f"seed {seed}: a valid one was not taken as such"


def _cut(wire: str) -> Figure:
    wrong, count, broken = [], 0, 0
    for seed in range(SEEDS):
        body = request(wire, seed)
        whole = messages_of(wire, body)
        for cut in cuts(whole):
            count += 1
            broken += bool(validate_request(wire, sent(wire, cut, body)))
            fixed = repair_history(cut)
            made = sent(wire, taken_up(cut, wire), body)
            if validate_request(wire, made) or repair_history(fixed.messages).mended:
                wrong.append(f"seed {seed}")
    told = f"{count:,} cuts of {SEEDS} histories, {broken:,} of them broken before"
    return exact(f"{wire}: cuts, not valid after repair", wrong, told)


def _sent_elsewhere(one: str, other: str) -> Iterator[str]:
    for seed in range(SEEDS):
        before = messages_of(one, request(one, seed))
        body = sent(other, repair_history(before, wire=other).messages)
        text = json.dumps(body, ensure_ascii=False)
        kept = all(
            json.dumps(part.text, ensure_ascii=False)[1:-1] in text
            for part in [*_parts(before, "text"), *_parts(before, "result")]
        )
        if certain_violations(other, body) or not kept:
            yield f"{one} to {other}, seed {seed}"


# time -----------------------------------------------------------------------------------------------------------------


def _times() -> Iterator[Figure]:
    history, sizes = _talk(1000), Sizes()
    note = "1,000 messages of 600 characters, 192,000 tokens"
    cold = _ms(lambda: assemble_context(history, 192_000, "s " * 500, "k: v\n" * 100, sizes=sizes), 1)
    yield Figure("context, each message counted for the first time", cold, "CPU ms", note=note)
    warm = _ms(lambda: assemble_context(history, 192_000, "s " * 500, "k: v\n" * 100, sizes=sizes))
    yield Figure("context, per request", warm, "CPU ms", _PER_1000, note=note)
    yield Figure(
        "repair", _ms(lambda: repair_history(history)), "CPU ms", _PER_1000, note="1,000 messages, nothing wrong"
    )
    body = anthropic_messages.body(ModelRequest(tuple(history)))
    count = len(body["messages"])
    yield Figure(
        "validate",
        _ms(lambda: validate_request("anthropic_messages", body)),
        "CPU ms",
        _PER_1000,
        note=f"{count} messages",
    )
    yield Figure("prefix", _ms(lambda: digest_body(body).prefix), "CPU ms", note=f"{count} messages")


def _ms(work: Callable[[], Any], times: int = 7) -> float:
    took = []
    for _ in range(times):
        begun = time.process_time()
        work()
        took.append(time.process_time() - begun)
    return sorted(took)[len(took) // 2] * 1000


def _talk(count: int) -> list[ChatMessage]:
    dice = random.Random(5)
    made: list[ChatMessage] = []
    for n in range(count // 4):
        prompt, given, result, answer = (" ".join(dice.choices(_WORDS, k=120)) for _ in range(4))
        call = ChatPart("call", call_id=f"toolu_{n}", name="read", arguments={"path": given})
        made += [ChatMessage("user", (ChatPart("text", prompt),)), ChatMessage("assistant", (call,))]
        made += [
            ChatMessage("tool", (ChatPart("result", result, f"toolu_{n}"),)),
            ChatMessage("assistant", (ChatPart("text", answer),)),
        ]
    return made


# a judge from outside -------------------------------------------------------------------------------------------------


def _judged() -> Iterator[Figure]:
    """The chat form, as a vendor's own validator sees it: with repair and, to know that it looks, without."""
    with tempfile.TemporaryDirectory(prefix="everturn-judge-") as folder:
        python = str(Path(folder) / ("Scripts" if sys.platform == "win32" else "bin") / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            venv.create(folder, with_pip=True)
            subprocess.run([*install, "mistral-common==1.13.*"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as failure:
            yield Figure("mistral-common", None, note=f"cannot be installed: {failure}")
            return
        for name, bar, mend in (("broken histories", None, False), ("repaired histories", 0.0, True)):
            bodies = list(_chat_bodies(mend))
            lines = "\n".join(map(json.dumps, bodies))
            told = subprocess.run([python, str(_JUDGE)], input=lines, text=True, check=True, capture_output=True)
            verdicts = json.loads(told.stdout)
            why = "; ".join(f"{count} × {reason}" for reason, count in list(verdicts["reasons"].items())[:3])
            note = f"of {len(bodies):,}; {verdicts['by']}; {why}".rstrip("; ")
            yield Figure(f"{name} that it refuses", verdicts["refused"], "", bar, note=note)


def _chat_bodies(mend: bool) -> Iterator[list[dict[str, Any]]]:
    for wire in WIRES:
        for seed in range(_JUDGED):
            history = repair_history(messages_of(wire, request(wire, seed)), wire="chat_completions").messages
            for cut in cuts(_with_short_ids(history)):
                made = taken_up(_from_user(cut), "chat_completions") if mend else _from_user(cut)
                if made:
                    yield _plain(sent("chat_completions", made)["messages"])


def _with_short_ids(messages: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...]:
    """The history with call ids of nine letters and digits, which is all that vendor takes."""
    made = []
    for message in messages:
        for place, part in enumerate(message.parts):
            if part.call_id:
                message = with_call_id(message, place, hashlib.sha256(part.call_id.encode()).hexdigest()[:9])
        made.append(message)
    return tuple(made)


def _from_user(messages: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...]:
    """It wants to begin with the user; what a window leaves is made so by the context."""
    starts = (place for place, message in enumerate(messages) if message.role in ("user", "system"))
    return messages[next(starts, len(messages)) :]


def _plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As that vendor's models take it: texts only, and words of the system at the beginning only."""
    made = []
    for place, message in enumerate(messages):
        role, content = message["role"], message.get("content")
        role = "user" if role in ("system", "developer") and place else role
        text = " ".join(one.get("text", "[image]") for one in content) if isinstance(content, list) else content
        made.append({**message, "role": role, "content": text})
    return made


def _parts(messages: tuple[ChatMessage, ...], kind: str) -> list[ChatPart]:
    return [part for message in messages for part in message.parts if part.kind == kind]


if __name__ == "__main__":
    sys.exit(main())
