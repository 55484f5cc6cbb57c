"""A session with a push, a pull request, a deletion and a rename, and statements about it in many wordings."""

from __future__ import annotations

from pathlib import Path

from everturn.model.archive import Session
from everturn.store.contract import Store
from tests.recall.archives import Archive

HOME = "/home/ann/ferry/"


def ferry(store: Store, folder: Path) -> Session:
    """Seven turns. The tests fail, are repaired and pass; the linter still fails; nothing is merged or deployed."""
    archive = Archive(store, folder)
    line, use, back = archive.history.line, archive.use, archive.back

    def says(text: str) -> bytes:
        return line("assistant", [{"type": "text", "text": text}])

    return archive.take_in(
        line("user", "Add seat reservations to the timetable. Do not use a subagent for this. Every query must have a timeout."),  # 1
        use("Edit", "c1", file_path=HOME + "src/timetable.py", old_string="pass", new_string="reserve_seats()"),  # 2
        back("c1", "The file was updated."),  # 3
        use("Write", "c2", file_path=HOME + "src/seats.py", content="SEAT_LIMIT = 120\n"),  # 4
        back("c2", "File created successfully."),  # 5
        says("Seat reservations are in src/seats.py. I would recommend Kafka for the booking events."),  # 6
        line("user", "Run the tests. Keine neuen Tabellen anlegen, bitte."),  # 7
        use("Bash", "c3", command="pytest -q tests/test_seats.py"),  # 8
        back("c3", "Exit code 1\nE  KeyError: 'deck'\n4 failed, 57 passed", failed=True),  # 9
        use("Edit", "c4", file_path=HOME + "src/seats.py", old_string="deck", new_string="level"),  # 10
        back("c4", "The file was updated."),  # 11
        use("Bash", "c5", command="pytest -q tests/test_seats.py"),  # 12
        back("c5", "61 passed in 3.10s"),  # 13
        says("The KeyError is repaired, 61 tests pass now."),  # 14
        line("user", "Delete src/old_seats.py and rename docs/plan.md to docs/seats.md. デプロイはしないでください。"),  # 15
        use("Bash", "c6", command="rm src/old_seats.py && git mv docs/plan.md docs/seats.md"),  # 16
        back("c6", ""),  # 17
        says("Both are done."),  # 18
        line("user", "Commit it, push the branch and open a pull request. 不要合并。"),  # 19
        use("Bash", "c7", command="git commit -qam 'Reserve seats' && git log --oneline -1"),  # 20
        back("c7", "5e1f0a9 Reserve seats"),  # 21
        use("Bash", "c8", command="git push origin seats"),  # 22
        back("c8", "To github.com:ann/ferry.git\n * [new branch] seats -> seats"),  # 23
        use("Bash", "c9", command="gh pr create --fill --base main"),  # 24
        back("c9", "https://github.com/ann/ferry/pull/318"),  # 25
        says("The pull request is https://github.com/ann/ferry/pull/318."),  # 26
        line("user", "Check it with ruff as well. We store bookings in DuckDB."),  # 27
        use("Bash", "c10", command="ruff check src"),  # 28
        back("c10", "Exit code 1\nsrc/seats.py:3:1: F401 `os` imported but unused\nFound 2 errors.", failed=True),  # 29
        says("ruff finds 2 errors. Shall I use a window function for the waiting list?"),  # 30
        line("user", "Yes, go ahead. Actually, store bookings in MariaDB instead of DuckDB. Email reminders can wait until next month."),  # 31
        use("Bash", "c11", command="pip install mariadb"),  # 32
        back("c11", "Successfully installed mariadb-1.1.10"),  # 33
        says("mariadb is installed. Email reminders are deferred. Next: repair the ruff errors."),  # 34
        line("user", "N'utilise jamais de threads. Nunca registres contraseñas."),  # 35
        says("Understood."),  # 36
    )  # fmt: skip


TRUE = """
high_level_goal|Seat reservations are to be added to the timetable [t1 #1]
high_level_goal|The user asked for seat reservations in the timetable [t1 #1]
high_level_goal|Extend the timetable with seat reservations [t1 #1]
constraints|Using a subagent is not allowed [t1 #1]
constraints|No subagent for this work [t1 #1]
constraints|The user prohibits the use of a subagent [t1 #1]
constraints|A subagent must not be used [t1 #1]
constraints|Work without a subagent [t1 #1]
constraints|Subagents are off limits [t1 #1]
constraints|"Do not use a subagent for this" [t1 #1]
constraints|Every query needs a timeout [t1 #1]
constraints|Always give a query a timeout [t1 #1]
constraints|It is mandatory that a query has a timeout [t1 #1]
constraints|Queries without a timeout are not allowed [t1 #1]
constraints|The user insists on a timeout for every query [t1 #1]
constraints|Keine neuen Tabellen anlegen [t2 #7]
constraints|Der Nutzer verbietet neue Tabellen [t2 #7]
constraints|Neue Tabellen sind nicht erlaubt [t2 #7]
constraints|デプロイはしないでください [t3 #15]
constraints|デプロイは禁止 [t3 #15]
constraints|不要合并 [t4 #19]
constraints|N'utilise jamais de threads [t7 #35]
constraints|Ne pas utiliser de threads [t7 #35]
constraints|Nunca registres contraseñas [t7 #35]
constraints|No registrar contraseñas [t7 #35]
artifacts|src/timetable.py was changed for seat reservations [t1 #2]
artifacts|Modified src/timetable.py so that it reserves seats [t1 #2]
artifacts|src/timetable.py now calls `reserve_seats()` [t1 #2]
artifacts|src/seats.py is a new file [t1 #4]
artifacts|Created src/seats.py with SEAT_LIMIT = 120 [t1 #4]
artifacts|SEAT_LIMIT is 120 in src/seats.py [t1 #4]
artifacts|src/old_seats.py was deleted [t3 #16]
artifacts|src/old_seats.py has been removed [t3 #16]
artifacts|src/old_seats.py no longer exists [t3 #16]
artifacts|src/old_seats.py wurde gelöscht [t3 #16]
artifacts|docs/plan.md was renamed to docs/seats.md [t3 #16]
artifacts|docs/plan.md was moved to docs/seats.md [t3 #16]
artifacts|src/timetable.py was not deleted [t1 #2]
key_decisions|The seats branch was pushed [t4 #22]
key_decisions|The branch seats is on GitHub; it was pushed [t4 #22]
key_decisions|Pull request 318 was opened [t4 #25]
key_decisions|A PR has been created against main [t4 #24]
key_decisions|The PR is open at https://github.com/ann/ferry/pull/318 [t4 #26]
key_decisions|"Reserve seats" was committed [t4 #20]
key_decisions|The change was committed as 5e1f0a9 [t4 #21]
key_decisions|The pull request has not been merged [t4 #26]
key_decisions|Nothing was deployed [t4 #26]
primary_task|All 61 tests pass [t2 #13]
primary_task|`pytest -q tests/test_seats.py` passes now [t2 #12]
primary_task|The tests are green after the KeyError was fixed [t2 #14]
primary_task|At first 4 tests failed and 57 passed [t2 #9]
primary_task|4 tests failed with a KeyError before the repair [t2 #9]
open_questions|`ruff check src` fails with 2 errors [t5 #29]
open_questions|The linter does not pass: 2 errors [t5 #30]
open_questions|ruff still reports 2 errors [t5 #30]
next_steps|Repair the ruff errors [t6 #34]
key_decisions|The agent recommended Kafka for the booking events [t1 #6]
open_questions|Kafka for booking events is a suggestion of the assistant [t1 #6]
key_decisions|Bookings are stored in MariaDB [t6 #31]
key_decisions|The user chose MariaDB over DuckDB for bookings [t6 #31]
key_decisions|Bookings first went to DuckDB, then to MariaDB [t5 #27; t6 #31]
key_decisions|MariaDB, not DuckDB, holds the bookings [t6 #31]
key_decisions|The user agreed to a window function for the waiting list [t5 #30; t6 #31]
key_decisions|mariadb was installed with pip [t6 #32]
key_decisions|Email reminders are deferred [t6 #34]
key_decisions|Email reminders wait until next month [t6 #31]
high_level_goal|Reservation of seats in the timetable [t1 #1]
constraints|Refrain from using a subagent [t1 #1]
constraints|The user said not to use a subagent [t1 #1]
constraints|Subagents should be avoided for this task [t1 #1]
constraints|Don't use a subagent [t1 #1]
constraints|A timeout is required on every query [t1 #1]
constraints|All queries have to have a timeout [t1 #1]
constraints|Never run a query without a timeout [t1 #1]
constraints|The user does not want new tables ("Keine neuen Tabellen") [t2 #7]
constraints|Es dürfen keine neuen Tabellen angelegt werden [t2 #7]
constraints|The user wrote "不要合并" [t4 #19]
constraints|The user asks not to deploy: "デプロイはしないでください" [t3 #15]
constraints|Il ne faut pas utiliser de threads [t7 #35]
artifacts|src/seats.py was added as a new file and later edited [t1 #4; t2 #10]
artifacts|src/seats.py was created in turn 1 and edited in turn 2 [t1 #4; t2 #10]
artifacts|The agent edited src/seats.py to use level instead of deck [t2 #10]
artifacts|The obsolete src/old_seats.py is gone [t3 #16]
artifacts|docs/seats.md (renamed from docs/plan.md) [t3 #16]
artifacts|src/timetable.py: edited [t1 #2]
primary_task|The seat tests passed after the fix: 61 passed [t2 #13]
primary_task|Tests: 61 passed [t2 #13]
primary_task|The first test run failed with KeyError: 'deck' [t2 #9]
primary_task|4 of 61 tests failed at first [t2 #9]
open_questions|Lint is red: ruff found 2 errors [t5 #29]
open_questions|An unused import of `os` in src/seats.py is reported by ruff [t5 #29]
key_decisions|The work was committed and pushed on the branch seats [t4 #20, #22]
key_decisions|A pull request is open, not merged yet [t4 #25]
key_decisions|The agent opened a pull request with `gh pr create --fill --base main` [t4 #24]
key_decisions|The user asked to commit, push and open a pull request [t4 #19]
key_decisions|The user asked to delete src/old_seats.py [t3 #15]
key_decisions|Store bookings in MariaDB [t6 #31]
key_decisions|MariaDB replaces DuckDB for bookings [t6 #31]
key_decisions|Instead of DuckDB, bookings go to MariaDB [t6 #31]
key_decisions|The user switched from DuckDB to MariaDB for bookings [t6 #31]
key_decisions|Use a window function for the waiting list [t5 #30]
open_questions|Whether Kafka is used for booking events is open; only the agent recommended it [t1 #6]
next_steps|Fix the 2 ruff errors [t5 #30; t6 #34]
next_steps|Email reminders next month [t6 #31]
"""

FALSE = """
constraints|Always use a subagent for this [t1 #1]
constraints|A subagent must be used for this [t1 #1]
constraints|The user wants a subagent for this [t1 #1]
constraints|Using a subagent is fine [t1 #1]
constraints|Feel free to use a subagent [t1 #1]
constraints|The user requires the use of a subagent [t1 #1]
constraints|Use a subagent where it helps [t1 #1]
constraints|No query may have a timeout [t1 #1]
constraints|Queries must not have a timeout [t1 #1]
constraints|A timeout for a query is optional [t1 #1]
constraints|There is no need for a query timeout [t1 #1]
constraints|Avoid a timeout on any query [t1 #1]
constraints|Neue Tabellen anlegen [t2 #7]
constraints|Der Nutzer möchte neue Tabellen anlegen [t2 #7]
constraints|Neue Tabellen sind erlaubt [t2 #7]
constraints|デプロイしてください [t3 #15]
constraints|要合并 [t4 #19]
constraints|Utilise toujours des threads [t7 #35]
constraints|Siempre registres contraseñas [t7 #35]
constraints|Hay que registrar contraseñas [t7 #35]
artifacts|src/timetable.py was deleted [t1 #2]
artifacts|src/timetable.py has been removed [t1 #2]
artifacts|src/timetable.py no longer exists [t1 #2]
artifacts|src/timetable.py is a new file for seat reservations [t1 #2]
artifacts|src/timetable.py was created [t1 #2]
artifacts|src/timetable.py was renamed [t1 #2]
artifacts|src/timetable.py wurde gelöscht [t1 #2]
artifacts|Le fichier src/timetable.py a été supprimé [t1 #2]
artifacts|src/timetable.py fue eliminado [t1 #2]
artifacts|src/timetable.py は削除された [t1 #2]
artifacts|src/timetable.py 已删除 [t1 #2]
artifacts|src/old_seats.py was edited [t3 #16]
artifacts|src/old_seats.py was not deleted [t3 #16]
artifacts|src/seats.py was not created [t1 #4]
artifacts|SEAT_LIMIT is 57 in src/seats.py [t1 #4; t2 #9]
artifacts|src/cabins.py was created [t1 #4]
key_decisions|The branch was pushed to main [t4 #22]
key_decisions|The seats branch was not pushed [t4 #22]
key_decisions|The pull request was merged [t4 #26]
key_decisions|Pull request 318 has landed [t4 #26]
key_decisions|The PR was approved and merged into main [t4 #26]
key_decisions|No pull request was opened [t4 #26]
key_decisions|Pull request 381 was opened [t4 #25]
key_decisions|Seat reservations were deployed [t4 #26]
key_decisions|Seat reservations are live in production [t4 #26]
key_decisions|Seat reservations were released [t4 #26]
key_decisions|The commit was tagged [t4 #21]
key_decisions|The seats package was published [t4 #26]
key_decisions|Nothing was committed [t4 #20]
key_decisions|プルリクエストはマージされた [t4 #26]
key_decisions|Der Branch wurde gemergt [t4 #26]
primary_task|The tests fail now [t2 #13]
primary_task|4 tests are failing [t2 #14]
primary_task|57 tests failed, 4 passed [t2 #9]
primary_task|`pytest -q tests/test_seats.py` still fails [t2 #12]
primary_task|`ruff check src` passes [t5 #28]
primary_task|The linter is clean [t5 #29]
primary_task|The lint errors were fixed [t5 #30]
open_questions|ruff reports 7 errors [t5 #29]
key_decisions|The user recommended Kafka for booking events [t1 #6]
key_decisions|Kafka for the booking events was requested by the user [t1 #6]
key_decisions|On the user's request, Kafka carries the booking events [t1 #6]
key_decisions|The user agreed to Kafka for booking events [t1 #6]
key_decisions|The agent forbade a subagent [t1 #1]
key_decisions|Bookings are stored in DuckDB [t5 #27]
key_decisions|DuckDB holds the bookings [t6 #31]
key_decisions|DuckDB replaces MariaDB for bookings [t6 #31]
key_decisions|Bookings are stored in DuckDB, not in MariaDB [t6 #31]
key_decisions|psycopg was installed with pip [t6 #32]
key_decisions|Bookings are stored in Cassandra [t6 #31]
constraints|Subagents are permitted [t1 #1]
constraints|Delegating to a subagent is mandatory [t1 #1]
constraints|The user told the agent to use a subagent [t1 #1]
constraints|The agent may use a subagent [t1 #1]
constraints|Prefer a subagent for this [t1 #1]
constraints|Timeouts on queries are forbidden [t1 #1]
constraints|Queries should run without a timeout [t1 #1]
constraints|The user does not want a timeout on queries [t1 #1]
constraints|New tables are welcome ("neuen Tabellen anlegen") [t2 #7]
constraints|Es sollen neue Tabellen angelegt werden [t2 #7]
constraints|必须合并 [t4 #19]
constraints|Il faut utiliser des threads [t7 #35]
constraints|デプロイが必要です [t3 #15]
artifacts|Removed src/timetable.py and src/seats.py [t1 #2]
artifacts|src/seats.py is gone [t1 #4]
artifacts|The agent dropped src/seats.py [t2 #10]
artifacts|docs/seats.md was deleted [t3 #16]
artifacts|src/old_seats.py was created [t3 #16]
artifacts|src/old_seats.py was renamed to src/seats.py [t3 #16]
artifacts|src/timetable.py was moved to src/seats.py [t1 #2]
artifacts|SEAT_LIMIT was set to 61 [t1 #4; t2 #13]
primary_task|All tests and lint checks pass [t5 #29]
primary_task|The ruff errors have been resolved [t5 #30]
primary_task|The tests are red [t2 #14]
primary_task|No tests pass [t2 #13]
primary_task|61 tests failed [t2 #13]
primary_task|Only 4 tests passed [t2 #9]
open_questions|ruff found no errors [t5 #29]
open_questions|ruff found 4 errors [t5 #29]
key_decisions|The pull request got merged [t4 #25]
key_decisions|The agent merged the seats branch into main [t4 #22]
key_decisions|Changes were force-pushed to master [t4 #22]
key_decisions|The change has not been committed [t4 #20]
key_decisions|A release was published with seat reservations [t4 #26]
key_decisions|Seat reservations went live [t4 #26]
key_decisions|Version 318 was tagged [t4 #25]
key_decisions|La pull request fue fusionada [t4 #26]
key_decisions|Le PR a été fusionné [t4 #26]
key_decisions|PR 已合并 [t4 #26]
key_decisions|The user proposed Kafka for booking events [t1]
key_decisions|Kafka was the user's choice for booking events [t1 #6]
key_decisions|Per the user, booking events go through Kafka [t1 #6]
key_decisions|The user rejected the window function for the waiting list [t5 #30; t6 #31]
key_decisions|The assistant decided that a subagent is not to be used [t1 #1]
key_decisions|Bookings go to DuckDB [t5 #27]
key_decisions|The user chose DuckDB over MariaDB for bookings [t6 #31]
key_decisions|Stay with DuckDB for bookings [t6 #31]
key_decisions|Email reminders were implemented [t6 #34]
key_decisions|Email reminders are done [t6 #34]
key_decisions|Redis was installed [t6 #32]
"""
