"""Commands of PowerShell, and commands that change files without naming them."""

from __future__ import annotations

import pytest

from everturn.derive.file_commands import command_touches
from everturn.derive.paths import matches_any
from everturn.derive.tool_scripts import wide_targets


@pytest.mark.parametrize(
    ("command", "touches"),
    [
        ("(Get-Content -Raw src/a.py).Replace('x','y') | Set-Content src/a.py", [("edited", "src/a.py")]),
        ("$p = 'src/a.ts'; (Get-Content $p) -replace 'x','y' | Set-Content -NoNewline $p", [("edited", "src/a.ts")]),
        ('cd "d:\\my shop"; @\'\nA=1\n\'@ | Out-File -FilePath .env.local -Encoding utf8', [("edited", "d:\\my shop/.env.local")]),
        ("Remove-Item -Path src\\old.py -Force", [("deleted", "src\\old.py")]),
        ("Remove-Item -Recurse build", []),
        ("Remove-Item src\\a.cs,src\\b.cs,c.csproj", [("deleted", "src\\a.cs"), ("deleted", "src\\b.cs"), ("deleted", "c.csproj")]),
        ('Remove-Item -Recurse -Force "f:\\my shop\\.github"', [("deleted", "f:\\my shop\\.github")]),
        ("del /q src\\old.py", [("deleted", "src\\old.py")]),
        ("Move-Item a.txt b.txt; Copy-Item b.txt -Destination c.txt", [("deleted", "a.txt"), ("created", "b.txt"), ("created", "c.txt")]),
        ("Rename-Item src/a.cs b.cs", [("deleted", "src/a.cs"), ("created", "src/b.cs")]),
        ("New-Item -ItemType Directory -Force -Path lib | Out-Null", []),
        ("New-Item -Path 'notes.md' -ItemType File", [("created", "notes.md")]),
        ("[System.IO.File]::WriteAllText('docs/a.html', $text, $utf8)", [("edited", "docs/a.html")]),
        ("Set-Content -Path (Join-Path $_ 'a.py') -Value ''", []),
        ("Get-Content a.py | Select-String x", []),
        ("echo 'Out-File with encoding'", []),
    ],
)  # fmt: skip
def test_a_cmdlet_names_its_file(command: str, touches: list[tuple[str, str]]) -> None:
    assert [one for one in command_touches(command, "") if one[0] != "read"] == touches


@pytest.mark.parametrize(
    ("command", "read"),
    [
        ("Get-Content -LiteralPath src/a.py -TotalCount 20", ["src/a.py"]),
        ("$l = Get-Content src\\a.py -Encoding UTF8; $l[0..9]", ["src\\a.py"]),
        ("powershell -NoProfile -Command 'Get-Content -LiteralPath '\"'\"'a.js'\"'\"' -Raw'", ["a.js"]),
        ("Select-String -Path src/a.py -Pattern 'lamp.py'", ["src/a.py"]),
        ("Get-ChildItem src | Select-String 'lamp.py'", []),
        ("(Get-Content a.py) -replace 'x','y' | Set-Content a.py", []),
        ("Get-Content $path", []),
    ],
)
def test_a_cmdlet_may_read_its_file(command: str, read: list[str]) -> None:
    assert [path for action, path in command_touches(command, "") if action == "read"] == read


def test_a_cmdlet_that_failed_touches_nothing() -> None:
    assert command_touches("'x' | Set-Content a.py", "    + FullyQualifiedErrorId : InvalidEndOfLine") == []


@pytest.mark.parametrize(
    ("command", "patterns"),
    [
        ("sed -i 's/a/b/' internal/api/*.go", ["internal/api/*.go"]),
        ("cd api && sed -i 's/a/b/' *.go", ["api/*.go"]),
        ("find . -name '*.py' -exec sed -i 's/a/b/' {} +", ["**/*.py"]),
        ("grep -rl old src --include='*.ts' | xargs sed -i 's/old/new/'", ["src/**/*.ts"]),
        ("Get-ChildItem docs\\*.html | ForEach-Object { (Get-Content $_) -replace 'a','b' | Set-Content $_ }", ["docs/*.html"]),
        ("Get-ChildItem -Path src -Recurse -Filter *.cs | ForEach-Object { Set-Content $_.FullName x }", ["src/**/*.cs"]),
        ("ls *.go", []),
        ("wc -l src/*.py", []),
        ("git log -- docs/*.html", []),
        ("cat > list.md <<'EOF'\n* one\nEOF", []),
    ],
)  # fmt: skip
def test_patterns_of_changed_files(command: str, patterns: list[str]) -> None:
    assert wide_targets(command) == patterns


def test_a_star_stays_within_a_folder() -> None:
    assert matches_any("src/a.go", ["src/*.go"])
    assert matches_any("/shop/src/a.go", ["src/*.go"])
    assert not matches_any("src/sub/a.go", ["src/*.go"])
    assert matches_any("src/sub/a.go", ["src/**/*.go"])
    assert matches_any("src/sub/a.go", ["*.go"])
    assert not matches_any("src/a.gob", ["src/*.go"])


def test_what_a_script_writes_into_a_temporary_folder_is_a_by_product() -> None:
    script = "python3 - <<'EOF'\ntext = open('notes.md').read()\nopen('{}', 'w').write(text)\nEOF"
    assert command_touches(script.format("/tmp/copy.md"), "") == []
    assert command_touches(script.format("copy.md"), "") == [("edited", "copy.md")]
    assert command_touches("cat > /tmp/body.md <<'EOF'\nHello\nEOF", "") == [("created", "/tmp/body.md")]


def test_a_folder_that_was_removed_is_named_and_one_that_could_not_be_is_not() -> None:
    assert command_touches("rmdir assets/old", "") == [("deleted", "assets/old")]
    assert command_touches("rmdir old; ls", "rmdir: failed to remove 'old': Directory not empty\na.py") == []
