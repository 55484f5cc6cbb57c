"""What was offered or put off is kept until somebody takes it up."""

from __future__ import annotations

import pytest

from everturn.derive.loose_ends import LooseEnd, advance_loose_ends

LEFT = LooseEnd("If you want, I can draft the migration guide.", 2, 7)
ASKED = LooseEnd("Want me to draft the migration guide?", 2, 7)


@pytest.mark.parametrize("end", [LEFT, ASKED])
def test_an_offer_stays_until_somebody_takes_it_up(end: LooseEnd) -> None:
    def left(reply: str, *words: str) -> bool:
        return bool(advance_loose_ends([end], 3, reply, [reply, *words], frozenset()))

    assert left("how do I install it?")
    assert not left("yes please")
    assert not left("what is in it?", "I drafted the migration guide.")


def test_what_was_put_off_is_not_forgotten_and_an_offer_is() -> None:
    later = LooseEnd("The CSV importer is a follow-up.", 1, 3)
    assert advance_loose_ends([LEFT, later], 20, "what time is it?", [], frozenset()) == (later,)


@pytest.mark.parametrize(("deed", "left"), [("push", 0), ("commit", 1)])
def test_a_push_ends_what_was_not_pushed(deed: str, left: int) -> None:
    end = LooseEnd("Branch not pushed — say the word.", 1, 3)
    assert len(advance_loose_ends([end], 2, "where is it?", [], frozenset({deed}))) == left
