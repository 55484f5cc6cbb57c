"""How full the context window is, and how many tokens were spent on what.

The provider's own count is used where there is one; everything else is an estimate and shown with `~`. Programs that
report a running total (`TokenTotals`) are taken by differences. At 80, 90 and 95 % of the window compacting is suggested,
once for each.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from everturn.llm import ReplyTokens

#: Shares of the window at which compacting is suggested, in percent.
THRESHOLDS = (80, 90, 95)

#: Taken for the window of a model when nobody says how large it is.
ASSUMED_WINDOW = 128_000


class SessionTokens(Struct, frozen=True):
    """Tokens of one session: what restoring cost, and what the conversation did."""

    restoration: int = 0
    restoration_in: int = 0
    restoration_out: int = 0
    session: int = 0
    summaries: int = 0  # made out of band while this program ran
    is_estimate: bool = False

    @property
    def combined(self) -> int:
        """Restoration and session together."""
        return self.restoration + self.session


def total_tokens(usage: ReplyTokens) -> int:
    """All tokens of a usage, those of the cache too."""
    return input_tokens(usage) + usage.output


def input_tokens(usage: ReplyTokens) -> int:
    """What went in, those of the cache too."""
    return usage.input + usage.cache_read + usage.cache_write


def short(tokens: int) -> str:
    """`2.3K` as people say it; small numbers as they are."""
    if tokens < 1000:
        return str(tokens)
    size, unit = (tokens / 1000, "K") if tokens < 999_950 else (tokens / 1_000_000, "M")
    return f"{size:.1f}{unit}"


@dataclass
class Meter:
    """The window of one model."""

    window: int = 0  # 0: nobody said
    used: int = 0
    is_estimate: bool = True
    _told: int = 0  # the highest threshold that was told

    @property
    def size(self) -> int:
        """The window, an assumed one where nobody said."""
        return self.window or ASSUMED_WINDOW

    @property
    def percent(self) -> int:
        """How much of it is used."""
        return 100 * self.used // self.size

    def answered(self, usage: ReplyTokens) -> None:
        """Take the count of the last answer: what went in and what came out is what the next request begins with."""
        if total_tokens(usage):
            self.used, self.is_estimate = total_tokens(usage), usage.source != "api"

    def estimated(self, tokens: int) -> None:
        """Take our own count of a request, until the provider says better."""
        self.used, self.is_estimate = tokens, True

    def suggestion(self) -> str:
        """What to tell the person now; nothing when there is nothing new."""
        reached = max((one for one in THRESHOLDS if self.percent >= one), default=0)
        if reached <= self._told:
            self._told = min(self._told, reached)
            return ""
        self._told = reached
        urgency = {80: "consider", 90: "better use", 95: "it is time for"}[reached]
        return f"⚠️  Context {self.described()}: {urgency} /compact to go on in a fresh session"

    def described(self) -> str:
        """`81% full (~103.7K of 128.0K tokens)`."""
        about, assumed = "~" if self.is_estimate else "", "" if self.window else ", assumed"
        return f"{self.percent}% full ({about}{short(self.used)} of {short(self.size)} tokens{assumed})"


@dataclass
class TokenTotals:
    """Turns running totals into what each answer cost. A total that falls has begun anew."""

    input: int = 0
    output: int = 0

    def since(self, input: int, output: int) -> tuple[int, int]:
        """The tokens since the last time it was asked."""
        fell = input < self.input or output < self.output
        new = (input, output) if fell else (input - self.input, output - self.output)
        self.input, self.output = input, output
        return new


def report(spent: SessionTokens, queries: int) -> str:
    """What /tokens shows."""
    about = "~" if spent.is_estimate else ""
    lines = [f"Total Queries: {queries}"]
    if spent.restoration:
        lines.append(
            f"Restoration: {spent.restoration:,} tokens (in: {spent.restoration_in:,}, out: {spent.restoration_out:,})"
        )
    lines.append(f"Session Tokens: {about}{spent.session:,} tokens")
    if spent.restoration:
        lines.append(f"Combined Total: {about}{spent.combined:,} tokens")
    if spent.summaries:
        lines.append(f"Summaries: {spent.summaries:,} tokens (out of band)")
    return "\n".join(lines)
