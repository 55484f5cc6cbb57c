"""Summaries with planted statements: how many false ones the check of a chat catches, and how many true ones it doubts.

Each story is a session in a journal, with prompts, answers and tool calls. A scripted model then summarises it with bullets
of which half are false: turned round, invented, attributed to the wrong task, or reported as done although it failed. The chat
checks the summary as it does for a person; the saved file shows what became of each bullet: left out, marked or kept.
The wordings are those of this module only. The rules of the check were not developed on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Figure
from everturn.llm.protocol import ChatMessage, ChatPart, Reply
from everturn.loop import records
from everturn.loop.journal import Journal
from tests.chat.program import Desk, Model, is_summary_request
from tests.model_server import Asked, ModelServer
from tests.model_wires import Says

_MARK = "(not found in the record)"
_RECALL, _PRECISION = 0.8, 0.9
_FORM = """<!-- SESSION_SUMMARY_START -->
**Background Context:** Initial session.

**Current Session Summary:**
**Topics Discussed:**
{topics}

**Decisions Made:**
{decisions}

**Pending:**
{pending}
<!-- SESSION_SUMMARY_END -->"""


@dataclass(frozen=True)
class Step:
    """One exchange: what the person says, the calls with their outputs, and the answer."""

    said: str
    answer: str
    calls: tuple[tuple[str, dict[str, str], str, bool], ...] = ()  # tool, arguments, output, whether it failed


@dataclass(frozen=True)
class SummaryStory:
    """A session and bullets about it, by section: topics, decisions, pending."""

    steps: tuple[Step, ...]
    true: tuple[tuple[str, str], ...]
    false: tuple[tuple[str, str], ...]


def _shell(command: str, output: str, failed: bool = False) -> tuple[str, dict[str, str], str, bool]:
    return "shell", {"command": command}, output, failed


def _edit(path: str, old: str, new: str) -> tuple[str, dict[str, str], str, bool]:
    return "edit_file", {"path": path, "old": old, "new": new}, f"edited {path}", False


def _read(path: str, output: str) -> tuple[str, dict[str, str], str, bool]:
    return "read_file", {"path": path}, output, False


STORIES = (
    SummaryStory(
        steps=(
            Step("Our invoice PDFs come out with the wrong VAT. Please look at billing/invoice.py.", "The rate is a constant, 19.", (_read("billing/invoice.py", "VAT = 19\n"),)),
            Step("It has to depend on the country. Don't touch the database schema for this.", "I made the rate depend on the country.", (_edit("billing/invoice.py", "VAT = 19", "VAT = rates[country]"),)),
            Step("Run the tests.", "Two tests fail because of the rounding.", (_shell("pytest billing", "2 failed, 14 passed", True),)),
            Step("Let's go with decimal.Decimal for the amounts then.", "Agreed, I will switch the amounts to Decimal next.", ()),
        ),
        true=(
            ("topics", "VAT in the invoice PDFs was a fixed 19 in billing/invoice.py"),
            ("topics", "The VAT rate now depends on the country"),
            ("decisions", "Leave the database schema alone"),
            ("decisions", "decimal.Decimal will be used for the amounts"),
            ("topics", "pytest billing: two failures, caused by rounding"),
            ("pending", "Switch the amounts to Decimal"),
        ),
        false=(
            ("topics", "The billing tests are green"),
            ("decisions", "Change the database schema so that it stores the rate"),
            ("decisions", "Floats stay in use for the amounts"),
            ("topics", "billing/invoice.py was deleted"),
            ("topics", "Deployed the new invoices to the staging cluster in Dublin"),
            ("topics", "The fix was pushed to origin/main"),
        ),
    ),
    SummaryStory(
        steps=(
            Step("The mobile app logs people out after an hour. Why?", "The refresh token expires after 3600 seconds in auth/session.ts.", (_read("auth/session.ts", "const ttl = 3600\n"),)),
            Step("Make it thirty days. And never log the token itself.", "The lifetime is 30 days now.", (_edit("auth/session.ts", "3600", "30 * 86400"),)),
            Step("Does it build?", "Yes, the build passes.", (_shell("npm run build", "built in 4.1s"),)),
            Step("Good. Commit it, but don't push yet.", "Committed as 4be21aa.", (_shell("git commit -am 'Longer sessions'", "[main 4be21aa] Longer sessions"),)),
        ),
        true=(
            ("topics", "Users were logged out hourly: the refresh token lived for 3600 seconds"),
            ("topics", "auth/session.ts now sets a lifetime of 30 days"),
            ("topics", "npm run build succeeded"),
            ("decisions", "The token must never be logged"),
            ("topics", "Committed as 4be21aa"),
            ("decisions", "No push for now"),
        ),
        false=(
            ("decisions", "Log the token to help with debugging"),
            ("topics", "The build broke with a type error"),
            ("topics", "The commit was pushed to the remote"),
            ("topics", "The lifetime was set to ninety days"),
            ("topics", "auth/cookies.ts was rewritten to use SameSite=Strict"),
            ("pending", "Migrate the Android client to Keychain storage"),
        ),
    ),
    SummaryStory(
        steps=(
            Step("I want the search page to load faster.", "Most time is spent in the query for suggestions.", (_shell("python profile.py", "suggest 812 ms\nrender 90 ms"),)),
            Step("Would Redis help?", "It could, but an index on terms.prefix is simpler.", ()),
            Step("OK, the index. No new services please.", "I added a migration with the index.", (("write_file", {"path": "migrations/0042_prefix.sql", "content": "CREATE INDEX terms_prefix ON terms(prefix);"}, "wrote migrations/0042_prefix.sql", False),)),
            Step("Measure again.", "The query takes 35 ms now.", (_shell("python profile.py", "suggest 35 ms\nrender 90 ms"),)),
        ),
        true=(
            ("topics", "The suggestions query took most of the time of the search page"),
            ("decisions", "An index on terms.prefix instead of Redis"),
            ("decisions", "No additional services"),
            ("topics", "migrations/0042_prefix.sql creates the index"),
            ("topics", "After the change the query needs 35 ms"),
        ),
        false=(
            ("decisions", "Add Redis as a cache for the suggestions"),
            ("topics", "Rendering was the slowest part of the search page"),
            ("topics", "The query got slower after the index was added"),
            ("decisions", "The user wants a new service for the suggestions"),
            ("topics", "Elasticsearch was evaluated and rejected"),
        ),
    ),
    SummaryStory(
        steps=(
            Step("Please write a script that renames our photos by date.", "I wrote rename_photos.py.", (("write_file", {"path": "rename_photos.py", "content": "import exifread\n"}, "wrote rename_photos.py", False),)),
            Step("Always make a dry run first, I don't want surprises.", "It now only renames with --apply.", (_edit("rename_photos.py", "import exifread", "import exifread, argparse"),)),
            Step("Try it on the folder holiday.", "exifread is not installed, so it stopped.", (_shell("python rename_photos.py holiday", "ModuleNotFoundError: No module named 'exifread'", True),)),
            Step("Then use Pillow, we have that already.", "I replaced exifread by Pillow; it lists 212 photos.", (_edit("rename_photos.py", "exifread", "PIL"), _shell("python rename_photos.py holiday", "212 photos would be renamed"))),
        ),
        true=(
            ("topics", "rename_photos.py renames photos by their date"),
            ("decisions", "A dry run always comes first; --apply renames"),
            ("topics", "exifread was missing, so the first try failed"),
            ("decisions", "Pillow replaces exifread"),
            ("topics", "212 photos in holiday would be renamed"),
        ),
        false=(
            ("decisions", "Rename without a dry run"),
            ("topics", "The first run worked without any problem"),
            ("decisions", "exifread was chosen over Pillow"),
            ("topics", "418 photos would be renamed"),
            ("topics", "The photos were uploaded to an S3 bucket"),
        ),
    ),
    SummaryStory(
        steps=(
            Step("Review the pull request about rate limits, file gateway/limits.go.", "It uses a fixed window, which lets bursts through at the edges.", (_read("gateway/limits.go", "// fixed window\n"),)),
            Step("I'd prefer a sliding window. Keep the public API as it is.", "I rewrote the limiter with a sliding window; the API is unchanged.", (_edit("gateway/limits.go", "fixed window", "sliding window"),)),
            Step("go test please", "All 31 tests pass.", (_shell("go test ./gateway/...", "ok  gateway  0.412s  31 passed"),)),
            Step("Thanks. The docs can wait until next week.", "Noted: the docs follow next week.", ()),
        ),
        true=(
            ("topics", "The fixed window let bursts through at its edges"),
            ("topics", "gateway/limits.go uses a sliding window"),
            ("decisions", "The public API stays unchanged"),
            ("topics", "go test passed"),
            ("pending", "Docs, next week"),
        ),
        false=(
            ("decisions", "Break the public API to allow a cleaner limiter"),
            ("topics", "go test reported three failures in the gateway"),
            ("decisions", "The fixed window is kept"),
            ("topics", "The docs were updated in the same change"),
            ("topics", "A token bucket written in Rust replaces the limiter"),
        ),
    ),
)  # fmt: skip


def summary_figures(folder: Path) -> Iterator[Figure]:
    """Hold each story, let it be summarised, and count what became of the bullets."""
    caught, missed, doubted, kept = list[str](), list[str](), list[str](), 0
    for number, story in enumerate(STORIES):
        place = folder / f"summary-{number}"
        place.mkdir()
        saved = _summarise(place, story)
        for _, text in story.false:
            (missed if _is_kept(text, saved) else caught).append(text)
        for _, text in story.true:
            if _is_kept(text, saved):
                kept += 1
            else:
                doubted.append(f"{text} ({'marked' if text in saved else 'left out'})")
    false, true, flagged = len(caught) + len(missed), kept + len(doubted), len(caught) + len(doubted)
    first = f"; first missed: {missed[0]}" if missed else ""
    yield Figure(
        "summary check: false bullets that are left out or marked", len(caught) / false, "", _RECALL, True,
        f"{len(caught)} of {false} in {len(STORIES)} stories{first}",
    )  # fmt: skip
    first = f"; first true one: {doubted[0]}" if doubted else ""
    yield Figure(
        "summary check: share of those flagged that are false", len(caught) / max(1, flagged), "", _PRECISION, True,
        f"{len(doubted)} of {true} true bullets are flagged, too{first}",
    )  # fmt: skip
    lost = [one for one in doubted if one.endswith("(left out)")]
    yield Figure("summary check: true bullets that are left out", len(lost), "", 0, note="; ".join(lost))


def _is_kept(text: str, saved: str) -> bool:
    return any(line.strip() == f"- {text}" for line in saved.splitlines())


def _summarise(folder: Path, story: SummaryStory) -> str:
    """Return the summary of a story as the chat saved it."""
    bullets = sorted([*story.true, *story.false], key=lambda one: one[1])  # an order that says nothing
    sections = {
        name: "\n".join(f"- {text}" for section, text in bullets if section == name) or "- None"
        for name in ("topics", "decisions", "pending")
    }

    class Summarises(Model):
        def __call__(self, asked: Asked) -> Says:
            return Says(_FORM.format(**sections)) if is_summary_request(asked) else super().__call__(asked)

    with ModelServer(Summarises()) as server:
        desk = Desk(folder, server)
        desk.chat("Hello.", words=("--new", "--no-summary"))
        (session,) = desk.sessions()
        with closing(desk.store()) as store, Journal.open(store, session.native_id) as journal:
            for step in story.steps:
                _write_step(journal, step)
        desk.chat("Thanks, that is all.", words=("--resume",))
        return desk.saved[-1].read_text("utf-8").rpartition("<!-- SESSION_SUMMARY_START -->")[2]


def _write_step(journal: Journal, step: Step) -> None:
    journal.accept(step.said)
    for number, (tool, arguments, output, failed) in enumerate(step.calls):
        call = ChatPart("call", call_id=f"call-{journal.past.count}-{number}", name=tool, arguments=arguments)
        journal.write(records.ResponseRecord(reply=Reply(ChatMessage("assistant", (call,)), stop="calls")))
        result = records.ResultRecord(
            of=journal.past.response, call_id=call.call_id, name=tool, text=output, is_error=failed,
            outcome="error" if failed else "ok",
        )  # fmt: skip
        journal.write(result)
    journal.write(records.ResponseRecord(reply=Reply(ChatMessage("assistant", (ChatPart("text", step.answer),)))))
