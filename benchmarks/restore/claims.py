"""Sessions of our own with statements about them, half of them false: what a careless model might write.

Each story is a short session with a known course: a rule of the person, an edit, a test that fails, a suggestion of the agent
that nobody took up, a decision that is changed later, perhaps a commit, never a push. `claims` writes true statements about
it in several wordings and false ones of eight kinds. Each has the citation that a model would give.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from everturn.model.archive import Session
from everturn.store.contract import Store
from tests.recall.archives import Archive

STORIES = 14

#: What a false statement gets wrong.
KINDS = {
    "polarity": "a rule of the person turned round",
    "deleted": "a file deleted or created that was edited",
    "shipped": "committed, pushed, merged or a pull request opened when it was not",
    "passed": "tests passed that failed",
    "attributed": "said by the person when the agent said it",
    "number": "a wrong number",
    "contradiction": "contradicts what was decided later, or another statement",
    "invented": "a file or command that does not occur",
}


@dataclass(frozen=True)
class Claim:
    """A sentence for a section of a SESSION SUMMARY."""

    section: str
    text: str
    cite: str
    kind: str = ""  # of KINDS; "" if it is true

    @property
    def sentence(self) -> str:
        """The sentence with its citation, as a model writes it."""
        return f"{self.text} [{self.cite}]"


@dataclass(frozen=True)
class Story:
    """The parts a session is made of."""

    number: int
    feature: str  # "refresh tokens"
    place: str  # "the login"
    edited: str
    created: str
    read: str
    setting: str
    value: int
    act: str  # what the rule is about: "push to main"
    acting: str  # "pushing to main"
    forbids: bool  # the rule forbids it; else it demands it
    command: str
    failed: int
    passed: int
    complaint: str
    suggestion: str  # a library that only the agent wants
    use: str  # what it would be for
    thing: str  # what is decided about
    first: str
    second: str
    committed: bool
    hash: str

    @property
    def rule(self) -> str:
        """The rule in the words of the person."""
        return f"Never {self.act}." if self.forbids else f"Always {self.act}."


_FEATURES = (
    ("refresh tokens", "the login"), ("a retry queue", "the mailer"), ("a dark theme", "the dashboard"),
    ("rate limits", "the gateway"), ("a CSV export", "the invoice list"), ("full text search", "the catalogue"),
    ("webhook signatures", "the billing service"), ("an audit trail", "the admin panel"),
    ("image thumbnails", "the gallery"), ("a health probe", "the scheduler"), ("currency rounding", "the checkout"),
    ("session timeouts", "the kiosk client"), ("a changelog feed", "the release page"), ("a lease table", "the worker"),
)  # fmt: skip
_FILES = (
    "login", "mailer", "dashboard", "gateway", "invoices", "catalogue", "billing", "admin", "gallery", "scheduler", "checkout",
    "kiosk", "releases", "worker",
)  # fmt: skip
_SETTINGS = ("TIMEOUT", "RETRIES", "PAGE_SIZE", "MAX_WORKERS", "CACHE_TTL", "BATCH", "POOL_SIZE")
_ACTS = (
    ("push to main", "pushing to main", True), ("run the linter before a commit", "running the linter before a commit", False),
    ("touch the vendored protobuf files", "touching the vendored protobuf files", True),
    ("write docstrings for public functions", "writing docstrings for public functions", False),
    ("add new dependencies", "adding new dependencies", True),
    ("keep the API backwards compatible", "keeping the API backwards compatible", False),
    ("log customer addresses", "logging customer addresses", True),
)  # fmt: skip
_COMMANDS = ("pytest -q tests/test_{}.py", "npm test -- {}", "go test ./{}/...", "cargo test {}", "make check-{}")
_COMPLAINTS = (
    "expected 401, got 500", "list index out of range", "missing column shipped_at", "deadline exceeded after 5000 ms",
    "unexpected token in header",
)  # fmt: skip
_LIBRARIES = (
    ("Memcached", "caching"), ("Celery", "background jobs"), ("Pillow", "resizing"), ("Sentry", "error reports"),
    ("GraphQL", "the public queries"),
)  # fmt: skip
_CHOICES = (
    ("tokens", "Redis", "PostgreSQL"), ("log records", "SQLite", "ClickHouse"), ("uploads", "a local folder", "object storage"),
    ("job states", "a JSON file", "a database table"), ("feature flags", "environment variables", "a YAML file"),
)  # fmt: skip


def stories(seed: int = 7) -> list[Story]:
    """Return the same stories for the same seed."""
    rng = random.Random(seed)
    return [_story(number, rng) for number in range(STORIES)]


def _story(number: int, rng: random.Random) -> Story:
    name = _FILES[number]
    act, acting, forbids = _ACTS[number % len(_ACTS)]
    suggestion, use = _LIBRARIES[number % len(_LIBRARIES)]
    thing, first, second = _CHOICES[(number + number // 5) % len(_CHOICES)]
    return Story(
        number, *_FEATURES[number], edited=f"src/{name}.py", created=f"src/{name}_store.py", read=f"config/{name}.toml",
        setting=rng.choice(_SETTINGS), value=rng.randrange(20, 90), act=act, acting=acting, forbids=forbids,
        command=rng.choice(_COMMANDS).format(name), failed=rng.randrange(2, 9), passed=rng.randrange(30, 80),
        complaint=rng.choice(_COMPLAINTS), suggestion=suggestion, use=use, thing=thing, first=first, second=second,
        committed=number % 2 == 0, hash=f"{rng.getrandbits(28):07x}",
    )  # fmt: skip


def take_in(store: Store, folder: Path, story: Story) -> Session:
    """Write the session of a story and take it in. The numbers are those that the claims cite."""
    archive = Archive(store, folder)
    line, use, back = archive.history.line, archive.use, archive.back
    home = "/home/ann/shop/"

    def says(text: str) -> bytes:
        return line("assistant", [{"type": "text", "text": text}])

    last = (
        (use("Bash", "c5", command=f"git commit -am 'Keep {story.thing} in {story.second}'"),  # 16
         back("c5", f"[main {story.hash}] Keep {story.thing} in {story.second}\n 2 files changed, 31 insertions(+)"))  # 17
        if story.committed
        else (use("Bash", "c5", command="git status --short"), back("c5", f" M {story.edited}\n?? {story.created}\n"))
    )  # fmt: skip
    return archive.take_in(
        line("user", f"Please add {story.feature} to {story.place}. {story.rule}"),  # 1
        use("Read", "c1", file_path=home + story.read),  # 2
        back("c1", f"{story.setting} = {story.value}\n"),  # 3
        use("Edit", "c2", file_path=home + story.edited, old_string="pass", new_string=f"add('{story.feature}')"),  # 4
        back("c2", "The file was updated."),  # 5
        says(f"I added {story.feature} to {story.edited}. I suggest {story.suggestion} for {story.use} later on."),  # 6
        line("user", "Now run the tests."),  # 7
        use("Bash", "c3", command=story.command),  # 8
        back("c3", f"Exit code 1\nE  {story.complaint}\n{story.failed} failed, {story.passed} passed", failed=True),  # 9
        says(f"{story.failed} tests fail: {story.complaint}."),  # 10
        line("user", f"Leave them for now. We keep {story.thing} in {story.first}."),  # 11
        says(f"All right, {story.thing} go to {story.first}. Should old {story.thing} be moved as well?"),  # 12
        line("user", f"On second thought keep {story.thing} in {story.second}, not in {story.first}."),  # 13
        use("Write", "c4", file_path=home + story.created, content=f"# {story.thing} in {story.second}\n"),  # 14
        back("c4", "File created successfully."),  # 15
        *last,  # 16, 17
        says(f"{story.created} now keeps {story.thing} in {story.second}. Next step: fix the failing tests."),  # 18
    )  # fmt: skip


def claims(story: Story) -> list[Claim]:
    """Return true and false statements about a story, in an order that says nothing."""
    made = [*_true_claims(story), *_false_claims(story)]
    random.Random(story.number).shuffle(made)
    return made


def _pick(story: Story, *claims: Claim) -> Claim:
    """Choose a wording, another one in each story."""
    return claims[story.number % len(claims)]


def _true_claims(story: Story) -> Iterator[Claim]:
    s = story
    yield Claim("high_level_goal", f"Add {s.feature} to {s.place}", "t1 #1")
    yield _pick(s, *(Claim("constraints", text, "t1 #1") for text in _true_rules(s)))
    verb = ("edited", "changed", "updated", "modified")[s.number % 4]
    yield Claim("artifacts", f"{s.edited} was {verb} for {s.feature}", "t1 #4")
    yield Claim("artifacts", f"{s.created} was created and keeps {s.thing} in {s.second}", "t4 #14")
    yield Claim("artifacts", f"{s.read} was read; it sets {s.setting} to {s.value}", "t1 #2, #3")
    yield _pick(
        s,
        Claim("open_questions", f"`{s.command}` fails: {s.failed} failed, {s.passed} passed", "t2 #9"),
        Claim("next_steps", f'{s.failed} tests still fail with "{s.complaint}"', "t2 #10"),
        Claim("next_steps", f'Fix the failing tests: "{s.complaint}"', "t2 #9"),
        Claim("primary_task", f"The tests fail: {s.failed} failed, {s.passed} passed", "t2 #9"),
        Claim("open_questions", f"{s.failed} tests do not pass yet: {s.complaint}", "t2 #10"),
    )
    yield _pick(
        s,
        Claim("key_decisions", f"Keep {s.thing} in {s.second}, not in {s.first}", "t4 #13"),
        Claim("key_decisions", f"The user chose {s.second} for {s.thing} instead of {s.first}", "t4 #13"),
        Claim("key_decisions", f"{s.thing.capitalize()} are kept in {s.second}", "t4 #13"),
        Claim("key_decisions", f"The user first wanted {s.first} for {s.thing}, then {s.second}", "t3 #11; t4 #13"),
    )
    yield Claim("next_steps", "Fix the failing tests", "t4 #18")
    yield Claim("open_questions", f'"Should old {s.thing} be moved as well?"', "t3 #12")
    yield Claim("open_questions", f"The agent suggested {s.suggestion} for {s.use}; nobody has answered", "t1 #6")
    if s.committed:
        plain = Claim("key_decisions", f"The change was committed as {s.hash}", "t4 #17")
        fuller = f"Commit {s.hash} keeps {s.thing} in {s.second}; it was not pushed"
        yield plain if s.number % 4 else Claim("artifacts", fuller, "t4 #16, #17")


def _true_rules(story: Story) -> tuple[str, ...]:
    act, acting = story.act, story.acting
    said = f'The user said: "{story.rule}"'
    if story.forbids:
        return said, f"The user forbids {acting}", f"Do not {act}", f"The user does not want the agent to {act}"
    return said, f"The user asks to {act}", f"It is required to {act}", f"The user insists on {acting}"


def _false_claims(story: Story) -> Iterator[Claim]:
    s = story
    yield _pick(s, *(Claim("constraints", text, "t1 #1", "polarity") for text in _turned_rules(s)))
    yield _pick(
        s,
        Claim("artifacts", f"{s.edited} was deleted", "t1 #4", "deleted"),
        Claim("artifacts", f"Deleted {s.edited} in favour of {s.feature}", "t1 #4", "deleted"),
        Claim("artifacts", f"{s.edited} was removed from {s.place}", "t1 #4", "deleted"),
        Claim("artifacts", f"{s.edited} was created for {s.feature}", "t1 #4", "deleted"),
    )
    yield _pick(
        s,
        Claim(
            "key_decisions", f"The change that keeps {s.thing} in {s.second} was pushed to main", "t4 #18", "shipped"
        ),
        Claim("key_decisions", f"A pull request for {s.thing} in {s.second} was opened", "t4 #18", "shipped"),
        Claim("artifacts", f"The branch with {s.created} was merged", "t4 #14", "shipped"),
        Claim("artifacts", f"{s.created} was released with the new {s.thing}", "t4 #18", "shipped"),
    )
    if not s.committed:
        yield Claim("key_decisions", f"The change to keep {s.thing} in {s.second} was committed", "t4 #16", "shipped")
    yield _pick(
        s,
        Claim("open_questions", f"`{s.command}` passes", "t2 #9", "passed"),
        Claim("key_decisions", f"All tests pass for {s.feature}, {s.passed} passed", "t2 #10", "passed"),
        Claim("next_steps", f"The failing tests were fixed: {s.complaint} is resolved", "t2 #10", "passed"),
        Claim("artifacts", f"The tests of {s.edited} are green", "t1 #6; t2 #9", "passed"),
        Claim("primary_task", "The tests were run and succeeded", "t2 #7", "passed"),
    )
    yield _pick(
        s,
        Claim("key_decisions", f"The user wants {s.suggestion} for {s.use}", "t1 #6", "attributed"),
        Claim("key_decisions", f"The user decided on {s.suggestion} for {s.use} later on", "t1 #6", "attributed"),
        Claim("key_decisions", f"As the user asked, {s.suggestion} is planned for {s.use}", "t1 #6", "attributed"),
        Claim("constraints", f"The user suggested {s.suggestion} for {s.use}", "t1", "attributed"),
    )
    yield _pick(
        s,
        Claim("artifacts", f"{s.setting} is {s.value + 7} in {s.read}", "t1 #3", "number"),
        Claim("open_questions", f"{s.passed} tests failed and {s.failed} passed", "t2 #9", "number"),  # both occur
        Claim("next_steps", f"{s.failed + 1} tests fail with {s.complaint}", "t2 #10", "number"),
        Claim("open_questions", f"{s.passed} tests fail: {s.complaint}", "t2 #9", "number"),
    )
    yield _pick(
        s,
        Claim("key_decisions", f"We keep {s.thing} in {s.first}", "t3 #11", "contradiction"),
        Claim(
            "key_decisions", f"{s.thing.capitalize()} stay in {s.first}, not in {s.second}", "t4 #13", "contradiction"
        ),
        Claim("key_decisions", f"Do not keep {s.thing} in {s.second}", "t4 #13", "contradiction"),
        Claim("artifacts", f"{s.created} keeps {s.thing} in {s.first}", "t4 #14", "contradiction"),
    )
    name = s.edited.removesuffix(".py")
    yield _pick(
        s,
        Claim("artifacts", f"{name}_cache.py was created for {s.feature}", "t1 #4", "invented"),
        Claim("artifacts", f"`make deploy-{s.number}` was run after the edit of {s.edited}", "t1 #4", "invented"),
        Claim("artifacts", f"{name}_legacy.py was edited for {s.feature}", "t1 #4", "invented"),
        Claim("next_steps", f"Run `{s.command.split()[0]} --fix-all` for the failing tests", "t4 #18", "invented"),
    )


def _turned_rules(story: Story) -> tuple[str, ...]:
    act, acting = story.act, story.acting
    if story.forbids:
        start = act[0].upper() + act[1:]
        return (
            f"{start} whenever it is needed",
            f"The user allows {acting}",
            f"Always {act}",
            f"The user asked to {act}",
        )
    return (
        f"Never {act}",
        f"The user forbids {acting}",
        f"It is not necessary to {act}",
        f"The user does not want the agent to {act}",
    )
