"""Other wordings of the statements in `claims`: written after the checks, and measured before the checks were changed for them.

Forty false wordings, five of each kind, and twelve true ones, about the same stories.
"""

from __future__ import annotations

import random

from benchmarks.restore.claims import Claim, Story


def reworded_claims(story: Story) -> list[Claim]:
    """Return other statements about a story: one false one of each kind and three true ones."""
    false = [_turn(story, wordings) for wordings in _false_wordings(story)]
    made = [*false, *(_turn(story, wordings) for wordings in _true_wordings(story))]
    random.Random(story.number + 100).shuffle(made)
    return made


def _turn(story: Story, wordings: tuple[Claim, ...]) -> Claim:
    return wordings[story.number % len(wordings)]


def _false_wordings(s: Story) -> tuple[tuple[Claim, ...], ...]:
    return (
        _polarity(s),
        tuple(
            Claim("artifacts", text, "t1 #4", "deleted")
            for text in (
                f"{s.edited} no longer exists",
                f"The agent got rid of {s.edited}",
                f"{s.edited} has been dropped from the repository",
                f"{s.edited} is a new file for {s.feature}",
                f"{s.edited} was renamed during the work on {s.feature}",
            )
        ),
        tuple(
            Claim("key_decisions", text, "t4 #18", "shipped")
            for text in (
                f"The work on {s.thing} in {s.second} is live in production",
                f"{s.created} was pushed upstream",
                f"The pull request that keeps {s.thing} in {s.second} has been merged",
                f"{s.created} went out with the latest release",
                f"{s.created} was deployed, and {s.thing} are kept in {s.second}",
            )
        ),
        tuple(
            Claim("open_questions", text, "t2 #9", "passed")
            for text in (
                f"`{s.command}` finishes without errors",
                f"After the change `{s.command}` succeeds",
                f"The test run came back clean, {s.passed} passed",
                f'There are no failing tests any more; "{s.complaint}" is gone',
                f"The suite is green with {s.passed} passed",
            )
        ),
        tuple(
            Claim("key_decisions", text, "t1 #6", "attributed")
            for text in (
                f"{s.suggestion} for {s.use} was requested by the user",
                f"On the user's wish {s.suggestion} comes later for {s.use}",
                f"The person told the agent to use {s.suggestion} for {s.use}",
                f"The user agreed to {s.suggestion} for {s.use}",
                f"According to the user, {s.suggestion} should serve {s.use} later on",
            )
        ),
        (
            Claim("artifacts", f"{s.read} limits {s.setting} to {s.value * 2}", "t1 #3", "number"),
            Claim("open_questions", f"{s.failed + s.passed} tests failed", "t2 #9", "number"),
            Claim("open_questions", f"Only one test fails: {s.complaint}", "t2 #9", "number"),
            Claim("next_steps", f"Fix the {s.passed} failing tests", "t2 #9", "number"),
            Claim("artifacts", f"{s.setting} was set to {s.value + 1}", "t1 #3", "number"),
        ),
        (
            Claim("key_decisions", f"The final choice for {s.thing} is {s.first}", "t3 #11", "contradiction"),
            Claim("key_decisions", f"{s.second} was ruled out for {s.thing}", "t4 #13", "contradiction"),
            Claim("key_decisions", f"{s.first} replaces {s.second} for {s.thing}", "t4 #13", "contradiction"),
            Claim("key_decisions", f"{s.thing.capitalize()} moved from {s.second} to {s.first}", "t4 #13", "contradiction"),
            Claim("key_decisions", f"The user prefers {s.first} over {s.second} for {s.thing}", "t4 #13", "contradiction"),
        ),
        (
            Claim("artifacts", f"docs/{s.number}-{s.setting.lower()}.md describes {s.feature}", "t1 #4", "invented"),
            Claim("artifacts", f"A migration was added in migrations/{s.number}_add.sql", "t4 #14", "invented"),
            Claim("next_steps", f"Run `make bench-{s.number}` before the release", "t4 #18", "invented"),
            Claim("artifacts", f"{s.edited} and {s.edited.removesuffix('.py')}_api.py were edited", "t1 #4", "invented"),
            Claim("key_decisions", f"`docker compose up worker-{s.number}` starts {s.place}", "t1 #6", "invented"),
        ),
    )  # fmt: skip


def _polarity(s: Story) -> tuple[Claim, ...]:
    texts = (
        (
            f"It is fine to {s.act}",
            f"The user has no objection to {s.acting}",
            f"{s.acting.capitalize()} is encouraged",
            f"The user expects the agent to {s.act}",
            f"Feel free to {s.act}",
        )
        if s.forbids
        else (
            f"Avoid {s.acting}",
            f"{s.acting.capitalize()} is forbidden",
            f"The agent must not {s.act}",
            f"The user ruled out {s.acting}",
            f"There is no need to {s.act}",
        )
    )
    return tuple(Claim("constraints", text, "t1 #1", "polarity") for text in texts)


def _true_wordings(s: Story) -> tuple[tuple[Claim, ...], ...]:
    rule = (
        (f"{s.acting.capitalize()} is forbidden", f"The agent must not {s.act}", f"Avoid {s.acting}")
        if s.forbids
        else (
            f"The agent must {s.act}",
            f"The user expects the agent to {s.act}",
            f"{s.acting.capitalize()} is required",
        )
    )
    return (
        tuple(Claim("constraints", text, "t1 #1") for text in rule),
        (
            Claim("key_decisions", f"{s.second} was chosen for {s.thing}", "t4 #13"),
            Claim("key_decisions", f"{s.second} replaces {s.first} for {s.thing}", "t3 #11; t4 #13"),
            Claim("key_decisions", f"The user prefers {s.second} over {s.first} for {s.thing}", "t4 #13"),
        ),
        (
            Claim("open_questions", f"`{s.command}` still fails with {s.failed} failures", "t2 #9"),
            Claim("next_steps", f"The {s.failed} failing tests are left to fix", "t2 #10; t4 #18"),
            Claim("open_questions", f'The last test run failed: "{s.complaint}"', "t2 #9"),
        ),
    )
