"""A session in four languages, with an answer, a refusal and a review, and statements about it as a model writes them."""

from __future__ import annotations

from pathlib import Path

from everturn.model.archive import Session
from everturn.store.contract import Store
from tests.recall.archives import Archive

HOME = "/home/ann/museum/"


def museum(store: Store, folder: Path) -> Session:
    """Ten turns. An import is refused and then fails; a file is taken out of Git; a review finds faults; nothing is tested."""
    archive = Archive(store, folder)
    line, use, back = archive.history.line, archive.use, archive.back

    def says(text: str) -> bytes:
        return line("assistant", [{"type": "text", "text": text}])

    return archive.take_in(
        line("user", "Initialise le catalogue du musée. Pas de `eval` en Python. Tout en français."),  # 1
        use("Bash", "c1", command="python scripts/catalogue.py"),  # 2
        back("c1", "412 objects in 7 rooms\nbuilt in 3.42s"),  # 3
        says("Le catalogue est prêt : 412 objets dans 7 salles."),  # 4
        line("user", "Prepare the page for visitors."),  # 5
        use("AskUserQuestion", "c2", questions=[{"question": "Which view?", "options": [{"label": "Timeline"}, {"label": "Map"}]}]),  # 6
        back("c2", 'User has answered your questions: "Which view?"="Timeline". You can now continue.'),  # 7
        says("I will build that view."),  # 8
        line("user", "Run the importer with 40 workers."),  # 9
        use("Bash", "c3", command="python import.py --workers 40"),  # 10
        back("c3", "The user doesn't want to proceed with this tool use. The tool use was rejected.", failed=True),  # 11
        line("user", "Run it with 25 workers."),  # 12
        use("Bash", "c4", command="python import.py --workers 25"),  # 13
        back("c4", "Exit code 1\nTraceback (most recent call last):\nModuleNotFoundError: No module named 'polars'", failed=True),  # 14
        says("The import failed: the module polars is missing."),  # 15
        line("user", "导出按钮的快捷键由 ⌘E 改为 Ctrl+E。拖动标签时，标签始终保持水平。"),  # 16
        use("Edit", "c5", file_path=HOME + "src/toolbar.tsx", old_string="meta", new_string="ctrl"),  # 17
        back("c5", "The file was updated."),  # 18
        says("快捷键由 **⌘E** 改为 **Ctrl+E**，最多支持 5 个标签。"),  # 19
        line("user", "tira o arquivo .env do git, mas não precisa enviar agora"),  # 20
        use("Bash", "c6", command="git rm --cached .env"),  # 21
        back("c6", "rm '.env'"),  # 22
        says("O `.env` saiu do Git. Os segredos não aparecem mais no repositório."),  # 23
        line("user", "Review the changes of my colleague."),  # 24
        says(
            "**Ready to merge: No**\n\n- `loader.py` skips the checksum\n- the cache upgrade from 2.1.0 to 2.4.7 is unverified\n"
            "- the page takes 2-4 seconds\n\n/api/rooms → 404\n/rooms → 200"
        ),  # 25
        line("user", "Remove the counters on top of the bars. Format the ages as 10 instead of 10.00."),  # 26
        use("Edit", "c7", file_path=HOME + "src/chart.py", old_string="label", new_string=""),  # 27
        back("c7", "The file was updated."),  # 28
        says("The counters are gone. I would add a legend next, because the colours are hard to tell apart."),  # 29
        line("user", "Write the tour script. Each translator waits for the previous one to finish."),  # 30
        says(
            "First I write `lights.py`, then `doors.py`, finally `audio.py`. The captions prefer the German text and fall back to the Latin name.\n\n"
            "Should I format the years into the heading, or keep them as a separate column?\n\n**Next steps**\n- audio guide for children\n- floor plan"
        ),  # 31
        line("user", "Years as a separate column."),  # 32
        use("Bash", "c8", command="git push origin main"),  # 33
        back("c8", "remote: error: GH006\n ! [remote rejected] main -> main (protected branch)", failed=True),  # 34
    )  # fmt: skip


#: Section, statement and citation, by what is true of them.
TRUE = """
constraints|The use of `eval` is forbidden in Python [t1 #1]
artifacts|The catalogue has 412 objects in 7 rooms and was built in 3.42s [t1 #3]
key_decisions|The user chose the timeline view [t2 #7]
key_decisions|The user rejected the run with 40 workers [t3 #11]
open_questions|`python import.py --workers 25` failed because the module polars is missing [t4 #14]
key_decisions|导出按钮的快捷键由 ⌘E 改为 Ctrl+E [t5 #16]
key_decisions|The shortcut is now Ctrl+E instead of ⌘E [t5 #19]
artifacts|`.env` was removed from version control with `git rm --cached .env` [t6 #21]
constraints|O usuário disse que não precisa enviar agora [t6 #20]
open_questions|The review concluded that the changes are not ready to merge [t7 #25]
open_questions|The cache upgrade from 2.1.0 to 2.4.7 has not been verified [t7 #25]
artifacts|`/rooms` answers with 200 and `/api/rooms` with 404 [t7 #25]
key_decisions|The user wants the counters on top of the bars removed [t8 #26]
key_decisions|Ages are formatted as 10 instead of 10.00 [t8 #26]
constraints|Each translator has to wait until the previous one has finished [t9 #30]
artifacts|The captions prefer the German text and fall back to the Latin name [t9 #31]
artifacts|`lights.py` comes first, then `doors.py` and finally `audio.py` [t9 #31]
key_decisions|The years are kept as a separate column rather than formatted into the heading [t9 #31; t10 #32]
open_questions|An audio guide for children is not implemented yet [t9 #31]
artifacts|`git push origin main` was rejected [t10 #33]
next_steps|The agent would add a legend because the colours are hard to tell apart [t8 #29]
"""

FALSE = {
    "polarity": """
constraints|The use of `eval` is permitted in Python [t1 #1]
key_decisions|The user approved the run with 40 workers [t3 #11]
key_decisions|拖动标签时，标签应倾斜 [t5 #16]
open_questions|The reviewer considers the changes ready to merge [t7 #25]
open_questions|The cache upgrade was verified [t7 #25]
key_decisions|The user wants to keep the counters on top of the bars [t8 #26]
key_decisions|Os segredos aparecem no repositório [t6 #23]
constraints|Every translator works in parallel with the previous one [t9 #30]
artifacts|The captions prefer the Latin name and fall back to the German text [t9 #31]
artifacts|First comes `audio.py`, then `doors.py` and finally `lights.py` [t9 #31]
key_decisions|The years are formatted into the heading instead of a separate column [t9 #31; t10 #32]
""",
    "deleted": """
artifacts|`.env` was deleted from the disk [t6 #21]
artifacts|`loader.py` was edited to verify the checksum [t7 #25]
artifacts|`src/chart.py` was deleted with the counters [t8 #29]
artifacts|The importer was uninstalled again [t4 #15]
""",
    "shipped": """
artifacts|`src/toolbar.tsx` was edited and the change was committed [t5 #19]
artifacts|O `.env` saiu do Git e a alteração foi commitada [t6 #23]
""",
    "passed": """
open_questions|`python import.py --workers 25` completed successfully [t4 #14]
open_questions|The import succeeded [t4 #14; t4 #15]
artifacts|The counters were removed from `src/chart.py` and all tests pass [t8 #29]
artifacts|`git push origin main` was accepted [t10 #33]
""",
    "attributed": """
key_decisions|The agent asked for 25 workers [t4 #12]
key_decisions|The user pointed out that `loader.py` skips the checksum [t7 #25]
key_decisions|The user came up with a legend for the colours [t8 #29]
constraints|The agent brought up that each translator waits for the previous one [t9 #30]
""",
    "number": """
artifacts|The catalogue has 421 objects [t1 #3]
artifacts|The catalogue was built in 4.32s [t1 #3]
artifacts|The catalogue covers 9 rooms [t1 #3]
artifacts|最多支持 8 个标签 [t5 #19]
open_questions|The cache upgrade to 2.7.4 is unverified [t7 #25]
open_questions|The page takes 3-8 seconds [t7 #25]
artifacts|`/api/rooms` answers with 200 [t7 #25]
""",
    "contradiction": """
key_decisions|快捷键仍然是 ⌘E [t5 #19]
key_decisions|Ages are formatted as 10.00 instead of 10 [t8 #26]
artifacts|The audio guide for children is implemented [t9 #31]
""",
    "invented": """
artifacts|`src/legend.py` was created for the colours [t8 #29]
key_decisions|Kubernetes Ingress was chosen for `/api/rooms` [t7 #25]
""",
}
