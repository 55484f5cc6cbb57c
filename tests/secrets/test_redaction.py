"""Secrets are taken out, ordinary text stays. No vector stands here as it would look in the wild: all are put together."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.secrets.redaction import Cleaner, Secret, find_secrets, find_spans, redact_bytes, redact_text
from everturn.secrets.rules import use_own_patterns
from tests.secrets.secret_vectors import ALL_TOKENS, OPAQUE, PASSWORD, PHRASES, TOKENS, pem

ORDINARY = [
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 550e8400-e29b-41d4-a716-446655440000 of toolu_01ABCdefGHIjklMNOpqrSTUv",
    "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 40).decode(),
    "def login(user: str, password: str, token: str | None = None) -> bool:",
    "password: string; secret?: string; token: Token; apiKey: Optional[str] = None",
    "password = get_password(user1)", "password = os.environ['DB_PASSWORD_1']", "password=self.config2.password",
    'password="${DB_PASSWORD}"', "password=$PASSWORD1", 'api_key="YOUR_API_KEY"', 'token: "<your token here>"', "token = tokens[3]",
    'password: z.string().min(8)', '{"password": "********", "token": null}', '"max_tokens": 8192, "output_tokens": 12345678',
    "secretKeyRef:\n  name: my-app-tls-v2", "token: my-app-session-token", "secret = load_secret_v2", "SECRET_FILE=/run/secrets/db1",
    "Authorization: Bearer $TOKEN", "Authorization: Bearer <token>", "the authorization header, authorization: required",
    "Basic authentication is deprecated", "a bearer of good tidings and abcdefghijklmnopqrstuvwxyz",
    "http://localhost:3000/@vite/client", "git@github.com:me/repo.git", "https://example.org:8443/a@b", "ssh://git@example.org:22/x",
    "https://user:$PASS@host/", "https://user:{password}@host/",
    "sk-...", "ghp_" + "x" * 36, "AKIA" + "IOSFODNN7EXAMPLE", "export TOKEN=<token>", 'api_key: "your-api-key"', "password=hunter", "sk-ant-...",
    'integrity: "sha512-' + base64.b64encode(bytes(range(64))).decode() + '"', "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "privateKey: Uint8Array;", "the login form with password field", "PWD=/home/ann/shop1", "Cookie: the session cookie", "cookie: theme=dark-blue-mode",
    "docker run -u 1000:1000 image", "tool --token TOKEN", "the task-3f786850e387550fdab836ed7e6dc881de23001b file",
    "disk-usage sk-learn risk-free npm_config_registry hf_hub_download xoxo ghp_short AKIA eyJhbGciOi",
    'if "-----BEGIN PRIVATE ' + 'KEY-----" in text and "-----END PRIVATE ' + 'KEY-----" in text: pass',
    "-----BEGIN CERTIFICATE-----\n" + "A" * 64 + "\n-----END CERTIFICATE-----",
]  # fmt: skip


@pytest.mark.parametrize(("kind", "token"), ALL_TOKENS)
def test_a_token_is_found_by_its_shape_wherever_it_stands(kind: str, token: str) -> None:
    for text in (token, f"X={token}\n", f"会话 {token} —", f'{{"a":"b\\n{token}"}}', f"\x1b[31m{token}\x1b[0m"):
        assert redact_text(text) == text.replace(token, f"[REDACTED:{kind}]")


@pytest.mark.parametrize(("kind", "text", "gone"), PHRASES)
def test_a_password_is_found_by_what_is_said_about_it(kind: str, text: str, gone: str) -> None:
    assert redact_text(text) == text.replace(gone, f"[REDACTED:{kind}]")


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text: str) -> None:
    assert redact_text(text) is text
    line = json.dumps({"text": text}).encode()
    assert redact_bytes(line) is line


def test_our_own_sources_hold_nothing_secret() -> None:
    import everturn.secrets.redaction
    import everturn.secrets.rules

    for module in (everturn.secrets.redaction, everturn.secrets.rules):
        with open(module.__file__ or "", encoding="utf-8") as file:
            assert find_secrets(file.read()) == []


@pytest.mark.parametrize("kind", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
def test_a_private_key_goes_with_its_frame(kind: str) -> None:
    assert redact_text(f"a\n{pem(kind)}\nb") == "a\n[REDACTED:private_key]\nb"


def test_a_private_key_goes_from_a_raw_line_too() -> None:
    text = f"a\n{pem()}\nb"
    assert json.loads(redact_bytes(json.dumps({"t": text}).encode())) == {"t": "a\n[REDACTED:private_key]\nb"}
    nested = json.dumps({"t": json.dumps({"u": text})})
    assert json.loads(json.loads(redact_bytes(nested.encode()))["t"]) == {"u": "a\n[REDACTED:private_key]\nb"}


def test_a_private_key_that_was_cut_off_goes_as_far_as_it_is_there() -> None:
    start = pem().rsplit("\n", 4)[0]
    assert redact_text(f"{start}\n... more lines") == "[REDACTED:private_key]... more lines"
    line = json.dumps({"a": start, "b": "-----END RSA PRIVATE " + "KEY-----", "uuid": "1"}).encode()
    assert json.loads(redact_bytes(line)) == {
        "a": "[REDACTED:private_key]",
        "b": "-----END RSA PRIVATE " + "KEY-----",
        "uuid": "1",
    }


def test_at_least_thirty_kinds_are_known() -> None:
    assert len(TOKENS.keys() | {kind for kind, _, _ in PHRASES} | {"private_key"}) >= 50


@pytest.mark.parametrize("kind", ["github_token", "anthropic_key", "openai_key", "slack_token", "jwt"])
def test_a_token_that_a_narrow_screen_broke_goes_as_a_whole(kind: str) -> None:
    token = TOKENS[kind][0]
    head, rest = token[: len(token) * 2 // 3], token[len(token) * 2 // 3 :]
    for broken in (f"{head}\n{rest}", f"{head}\r\n  {rest}", f"{head}\n│ {rest}"):
        shown = redact_text(f"key {broken}\nand so on")
        assert head[-8:] not in shown and rest[-8:] not in shown and shown.endswith("and so on"), broken


def test_a_line_after_a_token_stays() -> None:
    token = TOKENS["github_token"][0]
    for following in ("Done in 3s", "next", "src/a1.py", "v2"):
        assert redact_text(f"{token}\n{following}") == f"[REDACTED:github_token]\n{following}"


@pytest.mark.parametrize("kind", ["github_token", "anthropic_key", "npm_token", "aws_access_key"])
def test_a_token_that_was_cut_off_goes_as_far_as_it_is_there(kind: str) -> None:
    token = TOKENS[kind][0]
    for text in (f"use {token[:17]}77", f"use {token[:17]}77…", f"use {token[:17]}77..."):
        assert redact_text(text).rstrip(".…") == f"use [REDACTED:{kind}]"


def test_a_password_in_an_address_that_was_cut_off_goes_too() -> None:
    assert redact_text(f"postgres://app:{PASSWORD}") == "postgres://app:[REDACTED:url_password]"
    assert redact_text("see http://localhost:8080") == "see http://localhost:8080"


@pytest.mark.parametrize("between", ["\x1b[01;31m", "\x1b[m", "\u200b", "\xad", "\x1b[0m\u200d\x1b[K", "\U000e0041"])
def test_colours_and_invisible_characters_hide_nothing(between: str) -> None:
    token = TOKENS["github_token"][0]
    text = f"会话 found: {token[:4]}{between}{token[4:20]}{between}{token[20:]}{between} and more"
    assert redact_text(text) == f"会话 found: [REDACTED:github_token]{between} and more"
    line = json.dumps({"a": text, "b": between}).encode()
    assert json.loads(redact_bytes(line)) == {"a": redact_text(text), "b": between}


def test_json_in_json_in_json_is_read_too() -> None:
    line = json.dumps({"password": PASSWORD, "n": 1})
    for _ in range(3):
        line = json.dumps({"text": line})
    shown = redact_bytes(line.encode()).decode()
    for _ in range(3):
        shown = json.loads(shown)["text"]
    assert json.loads(shown) == {"password": "[REDACTED:password]", "n": 1}


def test_a_cleaner_is_both_under_one_key() -> None:
    token = TOKENS["npm_token"][0]
    clean = Cleaner(b"archive")
    assert clean(token) == redact_text(token, b"archive") != redact_text(token)
    assert clean.line(json.dumps(token).encode()) == redact_bytes(json.dumps(token).encode(), b"archive")
    assert Cleaner()(token) == "[REDACTED:npm_token]"


CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the real transcripts are not beside this checkout")
def test_real_transcripts_are_hardly_touched(capsys: pytest.CaptureFixture[str]) -> None:
    """They were looked through before they were given away: what is found there is an example, or a mistake."""
    size = found = 0
    for path in sorted(path for path in CORPUS.rglob("*") if path.is_file()):
        data = path.read_bytes()
        size += len(data)
        found += len(find_spans(data, raw=data[:1] in b"{["))
    with capsys.disabled():
        print(f" {found} in {size / 1e6:.0f} MB: {found / size * 1e6:.2f} per MB")
    assert found / size * 1e6 < 0.3


def test_secrets_are_given_with_their_place_in_the_text() -> None:
    token = TOKENS["npm_token"][0]
    text = f"会话: {token} — password={PASSWORD}"
    found = find_secrets(text)
    assert [text[secret.start : secret.end] for secret in found] == [token, PASSWORD]
    assert found[0] == Secret("npm_token", 4, 4 + len(token))


def test_a_token_in_an_assignment_is_named_by_its_family_and_counted_once() -> None:
    token = TOKENS["anthropic_key"][0]
    assert redact_text(f'ANTHROPIC_API_KEY="{token}"') == 'ANTHROPIC_API_KEY="[REDACTED:anthropic_key]"'
    assert len(find_secrets(f"Authorization: Bearer {TOKENS['jwt'][0]}")) == 1


def test_with_a_key_equal_secrets_stay_equal_and_different_ones_differ() -> None:
    one, two = TOKENS["github_token"][:2]
    first, again, other = redact_text(f"{one} {one} {two}", key=b"archive").split()
    assert first == again != other
    assert first.startswith("[REDACTED:github_token:")
    assert len(first) == len("[REDACTED:github_token:12345678]")
    assert redact_text(one, key=b"another") != first
    assert redact_bytes(json.dumps(one).encode(), key=b"archive") == json.dumps(first).encode()


def test_a_private_key_has_the_same_name_in_a_line_and_in_its_text() -> None:
    key = pem()
    assert json.loads(redact_bytes(json.dumps(key).encode(), key=b"k")) == redact_text(key, key=b"k")


@pytest.mark.parametrize("text", [text for _, text, _ in PHRASES] + [token for _, token in ALL_TOKENS])
def test_doing_it_twice_changes_nothing_more(text: str) -> None:
    once = redact_text(text, key=b"k")
    assert redact_text(once, key=b"k") is once


@pytest.mark.parametrize(("kind", "text", "gone"), PHRASES)
def test_a_raw_line_stays_json_and_says_the_same_as_its_text(kind: str, text: str, gone: str) -> None:
    del kind
    value = {"a": text, "n": [1, {"b": f'say "{text}"'}], "uuid": "550e8400-e29b-41d4-a716-446655440000"}
    raw = redact_bytes(json.dumps(value, ensure_ascii=False).encode())
    assert json.loads(raw)["a"] == redact_text(text)
    assert gone not in json.dumps(json.loads(raw), ensure_ascii=False)
    assert json.loads(raw)["uuid"] == value["uuid"]


def test_several_lines_are_each_kept_valid_and_in_place() -> None:
    token = TOKENS["npm_token"][0]
    lines = [json.dumps({"n": n, "t": token if n % 2 else "clean"}) for n in range(4)]
    data = ("\n".join(lines) + "\n").encode()
    assert redact_bytes(data) == data.replace(token.encode(), b"[REDACTED:npm_token]")


def test_a_name_and_a_value_that_are_json_themselves_are_redacted_inside() -> None:
    line = json.dumps({"password": PASSWORD, "pin": 12345678, "token": OPAQUE, "next": {"secret": OPAQUE}}).encode()
    assert json.loads(redact_bytes(line)) == {
        "password": "[REDACTED:password]", "pin": 12345678, "token": "[REDACTED:token]", "next": {"secret": "[REDACTED:secret]"},
    }  # fmt: skip


def test_a_number_that_is_taken_for_a_secret_does_not_break_the_line() -> None:
    value = {"authorization": 1234567890123, "list": [{"password": PASSWORD}, None, True], f"token={OPAQUE}": 1.5}
    line = json.dumps(value).encode() + b"\n"
    new = redact_bytes(line)
    assert new.endswith(b"\n")
    assert json.loads(new) == {
        "authorization": 1234567890123,
        "list": [{"password": "[REDACTED:password]"}, None, True],
        "token=[REDACTED:token]": 1.5,
    }


def test_a_line_end_before_what_looks_like_a_token_stays_a_line_end() -> None:
    text = "a\n" + TOKENS["npm_token"][0][1:] + f" password={PASSWORD} é\\"
    assert json.loads(redact_bytes(json.dumps(text).encode())) == text.replace(PASSWORD, "[REDACTED:password]")


def test_a_line_that_is_no_json_is_redacted_too() -> None:
    line = f'{{"authorization": 1234567890123, "password": "{PASSWORD}", "torn'.encode()
    assert PASSWORD.encode() not in redact_bytes(line)


PIECES = st.sampled_from(
    ["password=", "password: ", '"', "'", "\\", "\n", "{", "}", "api_key", ":", "=", " ", "token", "a1b2c3d4e5f6g7h8", "Bearer ", "authorization",
     "://u:", "@h", "会", "\ud800", "-----BEGIN PRIVATE " + "KEY-----", "-----END PRIVATE " + "KEY-----", "A" * 50, PASSWORD, TOKENS["jwt"][0], " --token "]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@settings(deadline=None)
@given(st.dictionaries(TEXTS, st.one_of(TEXTS, st.lists(TEXTS, max_size=3), st.integers(), st.none()), max_size=4))
def test_any_valid_json_stays_valid_and_keeps_its_shape(value: dict[str, object]) -> None:
    for ascii_only in (True, False):
        line = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        new = json.loads(redact_bytes(line, key=b"k").decode("utf-8", "surrogatepass"))
        assert len(new) <= len(value)
        assert [type(item) for item in new.values()] == [type(item) for item in value.values()] or len(new) < len(value)


@settings(deadline=None)
@given(TEXTS)
def test_any_text_can_be_redacted_and_only_loses_what_was_found(text: str) -> None:
    parts: list[str] = []
    at = 0
    for secret in find_secrets(text):
        parts += text[at : secret.start], f"[REDACTED:{secret.kind}]"
        at = secret.end
    assert redact_text(text) == "".join((*parts, text[at:]))


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "piece",
    ["ghp_", "eyJ", " eyJaaaaaaaaaaaa.", "\\neyJ", "sk-ant-", "sk-", "://a:", "://", "password=", "password:\\", "token: \"", "authorization: ",
     "bearer a", " --", " --a-", "-----BEGIN PRIVATE " + "KEY-----", "xoxb-", "SG.aaaaaaaaaaaaaaaaaaaa.", "A", "api", "\\", "a=", "[REDACTED:"],
)  # fmt: skip
def test_hostile_text_is_read_in_linear_time(piece: str) -> None:
    # Were it quadratic, these sizes would take hours.
    text = piece * (1_000_000 // len(piece))
    assert isinstance(redact_text(text), str)
    assert json.loads(redact_bytes(json.dumps(text).encode())) is not None


@pytest.mark.parametrize("sign", "#?!@")
def test_a_password_of_an_address_may_contain_signs_that_should_be_encoded(sign: str) -> None:
    shown = redact_text(f"postgres://ann:tiger{sign}77x@db.example.org:5432/shop?sslmode=require")
    assert shown == "postgres://ann:[REDACTED:url_password]@db.example.org:5432/shop?sslmode=require"


@pytest.mark.parametrize(
    "text",
    [
        "http://shop.example.org:3000?email=ann@example.org",
        "http://shop.example.org:3000#ann@example.org",
        "http://shop.example.org:port?to=ann@example.org",
        "see http://shop.example.org:8080/?q=a:b@c",
    ],
)
def test_a_query_behind_a_port_is_no_password(text: str) -> None:
    assert redact_text(text) == text


@pytest.fixture
def own_patterns() -> Iterator[None]:
    use_own_patterns(("ACME-[0-9]+", '(?i)"zoë [^"]+"', "nightjar.*", "\U0001f511+"))
    yield
    use_own_patterns(())


@pytest.mark.usefixtures("own_patterns")
@pytest.mark.parametrize("is_ascii", [True, False])
def test_own_patterns_match_the_content_of_strings_in_a_raw_line(is_ascii: bool) -> None:
    text = 'a ACME-7\tb "ZOË \U0001f511 Ångström" c\n\U0001f511\U0001f511\\d nightjar \\ x\ne [REDACTED:jwt]'
    line = json.dumps({"t": text, "ACME-1": [7, "nightjar", {"n": "ACME-22"}], "z": "ok"}, ensure_ascii=is_ascii)
    mark = "[REDACTED:user_pattern]"
    shown = {"t": f"a {mark}\tb {mark} c\n{mark}\\d {mark}\ne [REDACTED:jwt]", mark: [7, mark, {"n": mark}], "z": "ok"}
    masked = redact_bytes(line.encode())
    assert json.loads(masked) == shown and redact_bytes(masked) == masked
    assert redact_text(text) == shown["t"]


@pytest.mark.usefixtures("own_patterns")
def test_own_patterns_match_through_colours_and_around_placeholders() -> None:
    assert "7731" not in redact_text("see \x1b[1mACME\x1b[0m-7731 now")
    assert redact_text("the nightjar [REDACTED:jwt] is ann") == "the [REDACTED:user_pattern]"
