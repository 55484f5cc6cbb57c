"""Models by their names in the config file."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from everturn import config_file, settings
from everturn.errors import BadConfig
from everturn.llm.config import ModelConfig, Surroundings, model_names, open_backend, read_model_config
from everturn.llm.protocol import Backend
from everturn.sources.contract import all_sources
from tests.llm.asking_models import asks
from tests.model_server import ModelServer
from tests.model_wires import Says

PROGRAMS = {name: source.ask for name, source in all_sources().items() if source.ask is not None}
AROUND = Surroundings({"MY_KEY": "sk-of-the-environment\n", "PATH": ""}, PROGRAMS)


def models(folder: Path, text: str) -> Any:
    """What the settings say about models, for this config file."""
    (folder / "config.toml").write_text(text)
    return settings.load(env={"EVERTURN_HOME": str(folder)}).models


def test_a_model_of_the_file_is_asked(tmp_path: Path) -> None:
    with ModelServer([Says("one"), Says("two"), Says("three")]) as server:
        told = models(
            tmp_path,
            f"""
            [models]
            default = "mine"
            [models.mine]
            kind = "openai"
            base_url = "{server.base}"
            model = "small"
            key_env = "MY_KEY"
            max_tokens = 99
            window = 8000
            extra = {{ top_p = 0.5 }}
            [models.other]
            kind = "anthropic"
            base_url = "{server.root}"
            model = "big"
            keyring = "service/me"
            stream = false
            """,
        )
        around = Surroundings({"MY_KEY": "sk-env\n"}, {}, lambda service, user: f"sk-{service}-{user}")
        for wanted, text in (("", "one"), ("mine/vendor/large", "two"), ("other", "three")):
            assert open_backend(told, wanted, around).ask(asks()).text == text
        first = open_backend(told, "mine", around)
    assert (first.name, first.model, first.window, first.max_tokens) == ("mine", "small", 8000, 99)
    assert model_names(told) == ["mine", "other"]
    assert [asked.body["model"] for asked in server.asked] == ["small", "vendor/large", "big"]
    assert [asked.body["max_tokens"] for asked in server.asked] == [99, 99, 4096]
    assert server.asked[0].headers["authorization"] == "Bearer sk-env" and server.asked[0].body["top_p"] == 0.5
    assert server.asked[2].headers["x-api-key"] == "sk-service-me" and not server.asked[2].is_streamed


@pytest.mark.parametrize(
    ("table", "wanted", "words"),
    [
        ("", "nobody", "models.nobody: no model is configured; add a [models.NAME] table"),
        (
            "[models.a]\nkind='openai'\n[models.b]\nkind='openai'",
            "c",
            "this model is not configured; configured models: a, b",
        ),
        ("[models.a]\nkind='openai'", "", "no default model is set; configured models: a"),
        ("[models]\ndefault='x'", "", "models.x: no model is configured"),
        ("[models.a]\nmodel='m'", "a", "models.a: object missing required field kind"),
        ("[models.a]\nkind='openai'", "a", "models.a.model: name a model, here or as a/MODEL"),
        ("[models.a]\nkind='openai'\nmodel='m'\nkey='sk-1'", "a", "models.a.key: unknown key"),
        ("[models.a]\nkind='openai'\nmodel=3", "a", "models.a.model: expected str"),
        ("[models.a]\nkind='openai'\nmodel='m'\nkey_env='NOT_SET'", "a", "the environment variable NOT_SET is not set"),
        ("[models.a]\nkind='openai'\nmodel='m'\nkeyring='x'", "a", "must have the form SERVICE/USER"),
        ("[models.a]\nkind='openai'\nmodel='m'\nbase_url='http://example.com'", "a", "must begin with https://"),
        ("[models.a]\nkind='openai'\nmodel='m'\ntries=0", "a", "tries at least 1"),
        ("[models.a]\nkind='openai'\nmodel='m'\nheaders={Authorization='x'}", "a", "use key_env or keyring"),
        ("[models.a]\nkind='program'\nprogram='vim'", "a", "unknown program; known programs are"),
        (
            "[models.a]\nkind='nonsense'",
            "a",
            "unknown kind 'nonsense'; use one of anthropic, openai, openai_responses, program",
        ),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, table: str, wanted: str, words: str) -> None:
    told = models(tmp_path, table)
    with pytest.raises(BadConfig) as caught:
        open_backend(told, wanted, AROUND)
    assert words in str(caught.value) and "sk-" not in str(caught.value)


def test_a_wrong_model_does_not_stop_what_needs_none(tmp_path: Path) -> None:
    assert models(tmp_path, "[models.a]\nnonsense = 1") == {"a": {"nonsense": 1}}


def test_something_else_than_tables_under_models_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="models"):
        models(tmp_path, "models = 3")


def test_the_default_can_be_set_by_command(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[models.a]\nkind = "openai"\n')
    config_file.change_config(file, "models.default", "a")
    assert config_file.read_config(file).models == {"a": {"kind": "openai"}, "default": "a"}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_every_program_can_be_configured(tmp_path: Path, name: str) -> None:
    told = models(tmp_path, f"[models.p]\nkind='program'\nprogram='{name}'\nwindow=1000")
    backend = open_backend(told, "p/x/y", AROUND)
    assert (backend.name, backend.model, backend.window, backend.takes_tools) == ("p", "x/y", 1000, False)


@pytest.mark.parametrize(
    ("lookup", "words"), [(lambda s, u: None, "has no entry s/u"), (lambda s, u: 1 / 0, "ZeroDivisionError")]
)
def test_a_keyring_that_does_not_give_the_key_is_told(tmp_path: Path, lookup: Any, words: str) -> None:
    told = models(tmp_path, "[models.a]\nkind='openai'\nmodel='m'\nkeyring='s/u'")
    with pytest.raises(BadConfig, match=words):
        open_backend(told, "a", Surroundings({}, {}, lookup))


def test_without_the_package_keyring_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    told = models(tmp_path, "[models.a]\nkind='openai'\nmodel='m'\nkeyring='s/u'")
    with pytest.raises(BadConfig, match="pip install keyring"):
        open_backend(told, "a", Surroundings({}))


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with one kind that works and one that does not."""
    (tmp_path / "some_kinds.py").write_text(
        "class Echo:\n"
        "    def __init__(self, described):\n"
        "        self.name, self.model, self.window = described.name, described.model, described.window\n"
        "        self.greeting = described.options['greeting']\n"
        "def broken(described):\n    raise RuntimeError('no licence')\n"
    )
    info = tmp_path / "some_kinds-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-kinds\nVersion: 1.0\n")
    points = "[everturn.backends]\necho = some_kinds:Echo\nbroken = some_kinds:broken\nmissing = nowhere_at_all:x\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_other_packages_add_kinds(tmp_path: Path, plugin: None) -> None:
    text = "[models.e]\nkind='echo'\nmodel='m'\noptions={greeting='hi'}"
    backend: Any = open_backend(models(tmp_path, text), "e", AROUND)
    assert (backend.name, backend.greeting) == ("e", "hi")


@pytest.mark.parametrize(("kind", "words"), [("broken", "no licence"), ("missing", "nowhere_at_all")])
def test_a_kind_that_is_broken_is_told_and_stops_nothing_else(
    tmp_path: Path, plugin: None, kind: str, words: str
) -> None:
    told = models(tmp_path, f"[models.b]\nkind='{kind}'\n[models.a]\nkind='openai'\nmodel='m'")
    with pytest.raises(BadConfig, match=words):
        open_backend(told, "b", AROUND)
    backend: Backend = open_backend(told, "a", AROUND)
    assert backend.name == "a"


def test_kinds_are_not_imported_before_they_are_asked_for(tmp_path: Path, plugin: None) -> None:
    open_backend(models(tmp_path, "[models.a]\nkind='openai'\nmodel='m'"), "a", AROUND)
    assert {point.name for point in metadata.entry_points(group="everturn.backends")} >= {"echo", "broken"}
    assert "nowhere_at_all" not in sys.modules


def test_a_description_holds_no_key(tmp_path: Path) -> None:
    told = models(tmp_path, "[models.a]\nkind='openai'\nmodel='m'\nkey_env='MY_KEY'")
    assert isinstance(read_model_config(told, "a"), ModelConfig)
    assert "sk-of" not in repr(read_model_config(told, "a")) + repr(vars(open_backend(told, "a", AROUND)))
