"""Run in an environment with mistral-common: histories of the chat form, one a line, and how many it refuses."""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from typing import Any


def main() -> None:
    """Print the verdicts."""
    validator: Any = importlib.import_module("mistral_common.protocol.instruct.validator")
    request: Any = importlib.import_module("mistral_common.protocol.instruct.request")
    serving = validator.ValidationMode.serving
    judges = [validator.MistralRequestValidatorV3(serving), validator.MistralRequestValidatorV11(serving)]
    reasons: Counter[str] = Counter()
    for line in sys.stdin:
        try:
            for judge, messages in zip(judges, (_bare(json.loads(line)), json.loads(line)), strict=True):
                judge.validate_request(request.ChatCompletionRequest(messages=messages, model="m"))
        except Exception as failure:
            reasons[" ".join(f"{type(failure).__name__}: {failure}".split()[:12])] += 1
    names = " and ".join(type(judge).__name__ for judge in judges)
    print(json.dumps({"refused": sum(reasons.values()), "reasons": dict(reasons.most_common()), "by": names}))


def _bare(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The oldest takes words or calls, not both."""
    return [{**one, "content": ""} if one.get("tool_calls") else one for one in messages]


if __name__ == "__main__":
    main()
