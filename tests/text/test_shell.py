"""Shell commands taken apart without running them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.text.shell import split_commands, unfold_script, unquote_git_path


def words(text: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in split_commands(text)]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("rm a b", [["rm", "a", "b"]]),
        ("a && b; c | d\ne & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a &&\n  b", [["a"], ["b"]]),
        ("rm 'a b' \"c d\" e\\ f g\"h\"'i'", [["rm", "a b", "c d", "e f", "ghi"]]),
        ('echo "a \\"b\\" \\n"', [["echo", 'a "b" \\n']]),
        ("echo a \\\n  b", [["echo", "a", "b"]]),
        ("X=1 Y='2 3' sudo rm a", [["rm", "a"]]),
        ("timeout 5m rm a", [["rm", "a"]]),
        ("timeout -k 5 rm a", [["timeout", "-k", "5", "rm", "a"]]),
        ("rm a # and b\nrm c#d", [["rm", "a"], ["rm", "c#d"]]),
        ("sort < in 2>&1 | uniq <<< word", [["sort"], ["uniq"]]),
        ("echo '>' '&&' \"| x\"", [["echo", ">", "&&", "| x"]]),
    ],
)
def test_commands_are_told_apart_and_their_words_unquoted(text: str, commands: list[list[str]]) -> None:
    assert words(text) == commands


def test_files_written_to_are_kept_apart_from_the_words() -> None:
    command = split_commands("cmd a >out.txt 2>> 'err log' b &>all")[0]
    assert [word.text for word in command.words] == ["cmd", "a", "b"]
    assert [(sign, file.text) for sign, file in command.outputs] == [
        (">", "out.txt"),
        ("2>>", "err log"),
        ("&>", "all"),
    ]


def test_a_name_in_angle_brackets_is_a_part_of_a_path_that_was_taken_out() -> None:
    assert words("cd <repo> && cat <home>/a.txt") == [["cd", "<repo>"], ["cat", "<home>/a.txt"]]
    assert [file.text for file in split_commands("sort <in >out")[0].inputs] == ["in"]


def test_files_read_from_are_kept_apart_from_the_words() -> None:
    command = split_commands("cmd a < in.txt 0<'b c' <<< word")[0]
    assert [word.text for word in command.words] == ["cmd", "a"]
    assert [file.text for file in command.inputs] == ["in.txt", "b c"]


def test_the_body_of_a_here_document_is_no_command() -> None:
    assert words("cat > a <<EOF\nrm x\nEOF\nrm y") == [["cat"], ["rm", "y"]]
    assert words("cat <<-'END OF' <<B\n\trm x\n\tEND OF\nrm z\nB\nrm y") == [["cat"], ["rm", "y"]]
    assert words("cat <<EOF\nrm x") == [["cat"]]


@pytest.mark.parametrize(
    "text", ["rm $A", 'rm "$A"', "rm ${A}x", "rm *.py", "rm a?", "rm {a,b}", "rm $(ls)", "rm [ab]"]
)
def test_what_the_shell_fills_in_is_not_sure(text: str) -> None:
    assert split_commands(text)[0].words[1].sure is False


@pytest.mark.parametrize(
    "text",
    [
        "if a; then rm b; fi",
        "for x in a; do rm b; done",
        "(rm b)",
        "{ rm b; }",
        "! rm b",
        "[[ a > b ]]",
        "$(x 'y') b",
        "`rm b`",
        "rm 'b",
        'rm "b',
        "rm C:\\b",
        "diff <(rm b)",
    ],
)
def test_reading_ends_where_it_is_in_doubt_and_what_came_before_counts(text: str) -> None:
    assert words(f"ls; {text}") == [["ls"]]


def test_what_stands_around_an_or_is_left_out() -> None:
    assert words("a; b && c || d; e") == [["a"], ["e"]]
    assert words("a && b \"$(x 'y')\" || c") == []


def test_a_change_of_the_folder_that_may_not_have_happened_stays_as_a_doubt() -> None:
    for text in ("cd a || true; rm b", "cd a && x || y; rm b", "[ -d a ] && cd a; rm b"):
        found = {command.name: command.joint for command in split_commands(text)}
        assert (found["cd"], found["rm"]) == ("||", "")


def test_what_depends_on_a_question_counts_only_if_the_whole_went_well_because_of_it() -> None:
    assert words("[ -f x ] && rm x; ls") == [["[", "-f", "x", "]"], ["ls"]]
    assert words("[ -f x ] && rm x") == [["[", "-f", "x", "]"], ["rm", "x"]]


def test_a_question_before_a_pipe_decides_nothing() -> None:
    assert words("grep a x | tee y && rm z; ls") == [["grep", "a", "x"], ["tee", "y"], ["rm", "z"], ["ls"]]
    assert words("cat x | grep a && rm z; ls") == [["cat", "x"], ["grep", "a"], ["ls"]]


def test_the_end_of_a_cut_text_is_no_command() -> None:
    assert [command.name for command in split_commands("ls; rm /home/me/fi", complete=False)] == ["ls"]


def test_a_command_whose_complaints_are_thrown_away_is_silent() -> None:
    quiet, loud = split_commands("cat a 2>/dev/null; cat b 2>err")
    assert (quiet.silent, quiet.last, loud.silent, loud.last) == (True, False, False, True)


@settings(deadline=None)
@given(st.text(st.sampled_from("ab 'c\"\\\n$`(){}[]*?<>&|;#!=-\tEOF"), max_size=60))
def test_no_text_is_too_strange(text: str) -> None:
    for command in split_commands(text):
        assert command.words or command.outputs


@pytest.mark.parametrize(
    "piece", ["'a'", '"a', "<<a ", "<<a\n", "a ", "$(", "${", "\\ ", "&&", "a|", ">", "\n", "#", "$(a"]
)
def test_hostile_text_is_read_in_bounded_time(piece: str) -> None:
    assert isinstance(split_commands(piece * (20_000 // len(piece))), list)


@pytest.mark.parametrize(
    ("script", "plain"),
    [
        ("for f in a b; do rm $f.py; done", "rm a.py\nrm b.py"),
        ("for f in *.py; do rm $f; done; ls", "; ls"),
        ("D=src; rm $D/a \"${D}/b\" '$D'", "D=src; rm src/a \"src/b\" '$D'"),
        ("D=a; D=b; rm $D", "D=a; D=b; rm $D"),
        ("if [ -f a ]; then rm a; fi", "rm a"),
        ("if x; then rm a; else rm b; fi", ""),
        ("make || exit 1\nrm a", "make\nrm a"),
        ("touch a/{x,y}.py", "touch a/x.py a/y.py"),
        ("cat > a <<'E'\nfor x in y; do z; done\nE\nrm b", "cat > a <<'E'\nE\nrm b"),
    ],
)
def test_what_a_script_abbreviates_is_written_out(script: str, plain: str) -> None:
    assert unfold_script(script) == plain


@pytest.mark.parametrize(
    ("text", "words", "outputs"),
    [
        ("make 2>&1", ["make"], []),
        ("make 2>log", ["make"], [("2>", "log")]),
        ("make2>log", ["make2"], [(">", "log")]),
        ("make 12>log", ["make", "12"], [(">", "log")]),
        ("make 2 >log", ["make", "2"], [(">", "log")]),
    ],
)
def test_a_digit_before_a_redirection_is_its_number_only_where_a_word_would_begin(
    text: str, words: list[str], outputs: list[tuple[str, str]]
) -> None:
    [one] = split_commands(text)
    assert [word.text for word in one.words] == words
    assert [(sign, word.text) for sign, word in one.outputs] == outputs


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8))
def test_a_path_comes_back_however_git_quotes_it(name: str) -> None:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    octal = "".join(one if one.isascii() else "".join(f"\\{byte:03o}" for byte in one.encode()) for one in escaped)
    for printed in (octal, escaped):  # with core.quotePath, and without
        assert unquote_git_path(f'"{printed}"') == name
        assert unquote_git_path(f'"{printed}"', "surrogateescape") == name
