"""Which lines of pasted output tell the failure, and which messages are about something else."""

from __future__ import annotations

import pytest

from everturn.derive.failures import find_complaint
from everturn.text.pasted_output import find_pasted_failure

TRACE = """
quay-1  | Traceback (most recent call last):
quay-1  |   File "/srv/quay/loader.py", line 187, in check_key
quay-1  |     return self.berths[key][0]
quay-1  | IndexError: list index out of range
quay-1  |
quay-1  | During handling of the above exception, another exception occurred:
quay-1  |
quay-1  | Traceback (most recent call last):
quay-1  |   File "/srv/quay/loader.py", line 194, in check_key
quay-1  | ValueError: Berth without a ship: gull
quay-1 exited with code 1
"""

TERMINAL = """Last login: Sat Jun 28 11:45:40 from 10.0.0.7
ann@quay:~# ./load.sh
loading the first ship
loading the second ship and all of the crates that belong to it
psql:load.sql:76: ERROR:  column "berth" does not exist
psql:load.sql:79: ERROR:  column "tide" does not exist
ann@quay:~# systemctl status quay
"""


def pasted(text: str) -> str:
    found = find_pasted_failure(text)
    return found.text if found is not None else ""


def test_a_chained_trace_tells_what_was_raised_first_and_last() -> None:
    assert pasted(TRACE) == "IndexError: list index out of range … ValueError: Berth without a ship: gull"


def test_what_was_typed_at_a_terminal_is_searched_to_its_end() -> None:
    assert pasted(TERMINAL) == (
        'psql:load.sql:76: ERROR: column "berth" does not exist … psql:load.sql:79: ERROR: column "tide" does not exist'
    )


def test_a_build_that_ends_with_an_error_is_a_failure() -> None:
    text = "Run npm run build\n\n> quay@0.1.0 build\n> next build\n\nYou are using Node 16.\nError: Process ended with exit code 1."
    assert pasted(text) == "Error: Process ended with exit code 1."


@pytest.mark.parametrize(
    "text",
    [
        'Look at this:\n\nif err != nil {\n    util.Error("Failed to load %v: %v", ship, err)\n}\n',
        "# Plan\n\nHandle errors.\n\n# Steps\n\n1. ValueError: a berth without a ship is refused\n",
        f"{TERMINAL}\n12 passed in 0.3s\n",
        "WARN deprecated\nWarning: Failed to fetch one of the modules\ndone\n",
    ],
)
def test_code_documents_warnings_and_what_went_well_later_are_no_failure(text: str) -> None:
    assert pasted(text) == ""


def test_the_words_of_the_person_come_with_the_error_that_they_paste() -> None:
    complaint = find_complaint(f"The loader crashes when I start it.\n{TRACE}")
    assert complaint is not None and complaint.text.startswith("The loader crashes")
    assert complaint.detail.endswith("ValueError: Berth without a ship: gull")


@pytest.mark.parametrize("text", ["deu este erro", "все равно ошибка", "nochmal der fehler", "还有错误", "同じエラー"])
def test_the_word_for_an_error_alone_is_a_report_in_any_language(text: str) -> None:
    assert find_complaint(text) is not None


@pytest.mark.parametrize("text", ["handle errors", "no errors?", "show an error page", "без ошибок", "如果有错误"])
def test_a_request_about_errors_is_none(text: str) -> None:
    assert find_complaint(text) is None
