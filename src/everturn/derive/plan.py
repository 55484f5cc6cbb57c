"""The plan of a session: its items, and how a call that writes the plan changes them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.decisions import likeness
from everturn.derive.open_items import PlanUpdate


class PlanItem(Struct, frozen=True):
    """An item of the plan; turn and seq of its last change."""

    text: str
    status: str  # of open_items.STATUSES
    turn: int
    seq: int
    id: str = ""


def advance_plan(
    known: tuple[PlanItem, ...], plans: Iterable[tuple[PlanUpdate, int]], turn: int
) -> tuple[PlanItem, ...]:
    """Return the plan after one more turn."""
    items = list(known)
    for plan, seq in plans:
        if plan.whole:
            items = _replace_plan(items, [PlanItem(one.text, one.status, turn, seq, one.id) for one in plan.changes])
            continue
        for one in plan.changes:
            _change_item(items, PlanItem(one.text, one.status or "open", turn, seq, one.id), bool(one.status))
    return tuple(items)


def _replace_plan(old: list[PlanItem], new: list[PlanItem]) -> list[PlanItem]:
    """Replace the plan: items that are missing in the new one and were not done are dropped."""
    new_keys = {likeness(one.text) for one in new}
    turn, seq = (new[0].turn, new[0].seq) if new else (old[-1].turn, old[-1].seq) if old else (0, 0)
    kept = [
        one if one.status in ("done", "dropped") else replace(one, status="dropped", turn=turn, seq=seq)
        for one in old
        if likeness(one.text) not in new_keys
    ]
    before = {likeness(one.text): one for one in old}
    return [*kept, *(_keep_unchanged(before.get(likeness(one.text)), one) for one in new)]


def _keep_unchanged(before: PlanItem | None, now: PlanItem) -> PlanItem:
    return before if before is not None and before.status == now.status else now


def _change_item(items: list[PlanItem], new: PlanItem, has_status: bool) -> None:
    for number, one in enumerate(items):
        if new.id and one.id == new.id:
            status = new.status if has_status else one.status
            items[number] = replace(one, text=new.text or one.text, status=status, turn=new.turn, seq=new.seq)
            return
    if new.text:
        made = sum(1 for one in items if one.id)
        items.append(new if new.id else replace(new, id=str(made + 1)))
