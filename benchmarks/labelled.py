"""Prompts written for the benchmarks, each with what is in the window and whether it points out of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Labelled:
    """A prompt, the texts in the window, and whether it speaks of something that is not among them."""

    prompt: str
    window: tuple[str, ...]
    dangling: bool


_AUTH = (
    "Add a login page to the web shop.",
    "I added src/auth.py with a login function and wrote tests/test_auth.py. All 12 tests pass.",
    "Now rename the session cookie.",
    "Done: the cookie is called shop_session, see config/cookies.toml.",
)
_BUILD = (
    "The build is broken, have a look.",
    "make build stops with: error: linker `cc` not found. Installing build-essential should help.",
    "ok do that",
    "Installed. The build passes now, `compile_all()` takes 40 s.",
)
_PLAIN = ("Hello!", "Hello. How can I help you today?")
_EMPTY: tuple[str, ...] = ()

_POINTING_OUT = (
    ("Use the retry policy like we discussed.", _AUTH),
    ("Name the columns as before, with the invoice prefix.", _AUTH),
    ("Remember when we benchmarked the parser? Use those numbers.", _AUTH),
    ("Go back to the redis design.", _AUTH),
    ("Please go back to the two-phase migration plan.", _BUILD),
    ("Open that file again and add a docstring.", _PLAIN),
    ("What was in that file?", _PLAIN),
    ("Did you ever find out what caused that error?", _PLAIN),
    ("That function needs a timeout.", _PLAIN),
    ("Can you write down what we did about the kafka consumer lag?", _AUTH),
    ("Earlier you proposed a bloom filter, let's do it.", _AUTH),
    ("You said earlier that the webhook signature was wrong.", _BUILD),
    ("Undo the previous refactoring of the billing module.", _AUTH),
    ("As I said, never touch the vendored protobuf files.", _AUTH),
    ("Like I mentioned, the customer wants Portuguese translations.", _BUILD),
    ("Fix that thing with the tooltips.", _EMPTY),
    ("We already agreed on the GraphQL schema, so go on with the resolvers.", _AUTH),
    ("LIKE WE DISCUSSED: no ORM in the warehouse code.", _AUTH),
    ("use the names from the previous conversation", _BUILD),
    ("In the previous session you drew a diagram, show it again.", _AUTH),
    ("Do it as before.", _EMPTY),
    ("continue with what we did yesterday on the telemetry exporter", _AUTH),
    ("The previous attempt with websockets was better.", _AUTH),
    ("we already tried memcached, remember?", _BUILD),
    ("Apply the colour scheme we talked about earlier to the dashboards.", _BUILD),
    ("as i said the flux capacitor needs calibration first", _AUTH),
    ("Compare it with the numbers from earlier: p99 latency and heap size.", _AUTH),
    ("Bring that error back so that I can show it to the team.", _PLAIN),
)  # fmt: skip

_NOT_POINTING_OUT = (
    ("Open that file again and add a docstring.", _AUTH),
    ("What does that file do?", (*_BUILD, "See src/main.rs for it.")),
    ("Did you find out what caused that error?", _BUILD),
    ("How long does that function take?", _BUILD),
    ("Rename the cookie as before, but with a dash.", _AUTH),
    ("Like we discussed, keep the login page simple.", _AUTH),
    ("What we did to the cookie must be documented.", _AUTH),
    ("You renamed the cookie earlier, now rename its config.", _AUTH),
    ("Go back to the login page design.", _AUTH),
    ("Remember when you installed build-essential? Put that into the README.", _BUILD),
    ("As I said, do that.", _BUILD),
    ("Fix that thing, please.", _AUTH),
    ("Like I mentioned the build is broken.", _BUILD),
    ("We already have tests for login, extend them.", _AUTH),
    ("Make sure that file names are lower case.", _PLAIN),
    ("Return a result type so that error handling becomes explicit.", _PLAIN),
    ("It must not run earlier than 8 o'clock.", _PLAIN),
    ("Support Python 3.8 and earlier versions.", _PLAIN),
    ("Check out the previous commit and build it.", _PLAIN),
    ("Compare with the previous month in the report.", _PLAIN),
    ("The button should go back to the main page.", _PLAIN),
    ("Wake up 10 minutes earlier.", _PLAIN),
    ("Rename the heading to `What we did`.", _PLAIN),
    ('Change the label from "the previous" to "back".', _PLAIN),
    ("```\nas before\n```\nWhat does this print?", _PLAIN),
    ("> as I said, no\n\nWho wrote this?", _PLAIN),
    ("There is a file notes.txt; read that file and summarise it.", _PLAIN),
    ("I get ImportError: no module named jwt. Explain that error.", _PLAIN),
    ("Add a function parse(text) and test that function.", _PLAIN),
    ("Write a haiku about spring.", _PLAIN),
    ("Run the tests.", _AUTH),
    ("Now add a logout button.", _AUTH),
    ("It is the previous owner who has the key; add an owner field.", _PLAIN),
    ("Explain tail recursion.", _EMPTY),
    ("Keep the function pure, such that function calls can be cached.", _PLAIN),
    ("2026-03-01 10:00:01 INFO retry as before\nWhat does this log line mean?", _PLAIN),
)  # fmt: skip

PROMPTS = tuple(
    [Labelled(prompt, window, True) for prompt, window in _POINTING_OUT]
    + [Labelled(prompt, window, False) for prompt, window in _NOT_POINTING_OUT]
)
