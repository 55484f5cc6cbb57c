"""Settings: flag over environment over config file over default, and sentences for what cannot be used."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import get_args

import pytest

from everturn import config_file
from everturn.errors import BadConfig
from everturn.model.vocabulary import MODES
from everturn.settings import load


def config(folder: Path, text: str) -> dict[str, str]:
    """An environment whose config file says this."""
    (folder / "config.toml").write_text(text, "utf-8")
    return {"EVERTURN_HOME": str(folder)}


def test_one_home_holds_everything(tmp_path: Path) -> None:
    settings = load(env={"EVERTURN_HOME": str(tmp_path)})
    assert settings.db == str(tmp_path / "archive.db")
    assert settings.config == tmp_path / "config.toml"
    assert settings.state == tmp_path / "state"


def test_without_a_home_the_folders_of_the_platform_are_used() -> None:
    settings = load(env={})
    assert Path(settings.db).name == "archive.db"
    assert Path(settings.db).parent == settings.data
    assert "everturn" in str(settings.config) and settings.config.parent != settings.data


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    env = config(tmp_path, 'db = "/from/file.db"')
    assert load(env=env).db == "/from/file.db"
    assert load(env=env).origins["db"] == "config"
    env["EVERTURN_DB"] = "/from/environment.db"
    assert load(env=env).db == "/from/environment.db"
    assert load({"db": "/from/flag.db"}, env).db == "/from/flag.db"
    assert load({"db": "/from/flag.db"}, env).origins["db"] == "flag"


def test_an_empty_flag_says_nothing(tmp_path: Path) -> None:
    assert load({"db": ""}, {"EVERTURN_HOME": str(tmp_path)}).origins["db"] == "default"


def test_a_relative_archive_in_the_file_counts_from_the_file(tmp_path: Path) -> None:
    assert load(env=config(tmp_path, 'db = "sub/a.db"')).db == str(tmp_path / "sub" / "a.db")


@pytest.mark.parametrize("url", ["memory:", "postgresql://host/name?schema=x"])
def test_a_url_stays_as_it_is(tmp_path: Path, url: str) -> None:
    assert load(env=config(tmp_path, f'db = "{url}"')).db == url
    assert load({"db": url}, {"EVERTURN_HOME": str(tmp_path)}).db == url


def test_the_file_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('owner = "ada"')
    env = {"EVERTURN_HOME": str(tmp_path), "EVERTURN_CONFIG": str(tmp_path / "other.toml")}
    assert load(env=env).owner == "ada"


def test_rules_for_workspaces_and_sources_are_read(tmp_path: Path) -> None:
    text = """
    machine = "tower"
    [capture]
    mode = "redacted"
    exclude = ["~/private", "/clients/*"]
    [[workspace]]
    path = "~/work/*"
    mode = "structure"
    [sources]
    anything = ["~/elsewhere"]
    """
    settings = load(env=config(tmp_path, text))
    home = os.path.expanduser("~")
    assert settings.machine == "tower"
    assert settings.capture.mode == "redacted"
    assert settings.capture.exclude == (f"{home}/private", "/clients/*")
    assert [(rule.path, rule.mode) for rule in settings.workspaces] == [(f"{home}/work/*", "structure")]
    assert settings.sources == {"anything": (f"{home}/elsewhere",)}
    assert settings.origins["capture.mode"] == "config"


def test_the_modes_are_those_of_the_archive() -> None:
    assert get_args(config_file.Mode) == MODES


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("db = 3", "db", "expected str"),
        ('dbb = "x"', "dbb", "did you mean db?"),
        ('mode = "full"', "mode", "did you mean capture.mode?"),
        ('[capture]\nmod = "full"', "capture.mod", "did you mean capture.mode?"),
        ('[capture]\nmode = "ful"', "capture.mode", "not one of full, redacted, structure, off"),
        ('[capture]\nexclude = "x"', "capture.exclude", "expected array"),
        ('[[workspace]]\nmode = "off"', "workspace", "missing required field path"),
        ("colour = 1", "colour", "known keys are db, machine"),
        ("db = ", "config.toml", "not valid TOML"),
    ],
)
def test_a_wrong_setting_is_named_with_what_may_have_been_meant(
    tmp_path: Path, text: str, key: str, words: str
) -> None:
    with pytest.raises(BadConfig) as caught:
        load(env=config(tmp_path, text))
    sentence = str(caught.value)
    assert key in sentence and words in sentence and "config.toml" in sentence
    assert caught.value.exit_code == 2


def test_folders_are_made_for_their_owner_only(tmp_path: Path) -> None:
    settings = load({"db": str(tmp_path / "deep" / "a.db")}, {"EVERTURN_HOME": str(tmp_path / "home")})
    settings.make_folders()
    for folder in (settings.data, settings.state, tmp_path / "deep"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_setting_a_value_keeps_every_other_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '# mine\ndb = "x" # old\n\n[capture] # rules\nexclude = [\n  "a", # first\n]\n# stays\nmode = "off"\n\n'
        '[[workspace]]\npath = "w"\nmode = "off"\n'
    )
    config_file.change_config(file, "capture.exclude", "~/b, c/*")
    config_file.change_config(file, "capture.mode", "full")
    config_file.change_config(file, "machine", 'the "tower"')
    config_file.change_config(file, "sources.any-thing", "/e")
    assert file.read_text() == (
        '# mine\ndb = "x" # old\nmachine = "the \\"tower\\""\n\n[capture] # rules\nexclude = ["~/b", "c/*"]\n# stays\n'
        'mode = "full"\n\n[[workspace]]\npath = "w"\nmode = "off"\n\n[sources]\nany-thing = ["/e"]\n'
    )


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.toml"
    config_file.change_config(file, "capture.mode", "structure")
    assert config_file.read_config(file).capture.mode == "structure"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [entry.name for entry in file.parent.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("value", "globs"), [("a, b/*", ("a", "b/*")), ('["a", "b/*"]', ("a", "b/*")), ("[ab]*", ("[ab]*",)), ("", ())]
)
def test_a_list_is_written_with_commas_or_brackets(tmp_path: Path, value: str, globs: tuple[str, ...]) -> None:
    config_file.change_config(tmp_path / "config.toml", "capture.exclude", value)
    assert config_file.read_config(tmp_path / "config.toml").capture.exclude == globs


def test_the_number_of_processes_is_a_number_above_zero(tmp_path: Path) -> None:
    assert load(env={"EVERTURN_HOME": str(tmp_path)}).capture.processes >= 1
    config_file.change_config(tmp_path / "config.toml", "capture.processes", "1")
    settings = load(env={"EVERTURN_HOME": str(tmp_path)})
    assert (settings.capture.processes, settings.origins["capture.processes"]) == (1, "config")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("capture.mode", "loud"),
        ("capture.mod", "full"),
        ("sources.", "x"),
        ("capture.processes", "0"),
        ("capture.processes", "many"),
    ],
)
def test_a_value_that_cannot_be_used_changes_nothing(tmp_path: Path, key: str, value: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text('owner = "ada"\n')
    with pytest.raises(BadConfig):
        config_file.change_config(file, key, value)
    assert file.read_text() == 'owner = "ada"\n'


@pytest.mark.parametrize("text", ['capture.mode = "off"\n', 'capture = {mode = "off"}\n'])
def test_a_file_written_in_another_way_is_left_to_its_owner(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(BadConfig, match="by hand"):
        config_file.change_config(file, "capture.mode", "full")
    assert file.read_text() == text


def test_a_config_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"db = '\xff'")
    with pytest.raises(BadConfig, match="cannot be read"):
        load(env={"EVERTURN_HOME": str(tmp_path)})
