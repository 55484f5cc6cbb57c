"""What a provider would refuse in a request, found before it is sent.

The rules are those of the providers' documents and of their error messages, one module for each wire format. A rule that
holds for some models only is in `MODEL_DEPENDENT`: told, but no reason not to send. No rule is about sizes or prices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from everturn.llm import rules_anthropic_messages, rules_chat_completions, rules_responses

#: Newer models do not go on with an answer that was begun for them; older ones do.
MODEL_DEPENDENT = frozenset({"ends_on_assistant"})

#: (rule, where, sentence)
Found = tuple[str, str, str]
_RULES: dict[str, Callable[[Mapping[str, Any]], Iterable[Found]]] = {
    "anthropic_messages": rules_anthropic_messages.broken_rules,
    "chat_completions": rules_chat_completions.broken_rules,
    "responses": rules_responses.broken_rules,
}


class Violation(Struct, frozen=True):
    """One rule that a request breaks. Says nothing of what the request says."""

    rule: str
    where: str  # such as messages.3 or input.7
    sentence: str


def validate_request(wire: str, body: Mapping[str, Any]) -> list[Violation]:
    """Every rule of the wire format that the request breaks, in the order of the request. Nothing for other formats."""
    rules = _RULES.get(wire)
    return [Violation(*found) for found in rules(body)] if rules is not None else []


def certain_violations(wire: str, body: Mapping[str, Any]) -> list[Violation]:
    """The same without what only some models refuse."""
    return [one for one in validate_request(wire, body) if one.rule not in MODEL_DEPENDENT]
