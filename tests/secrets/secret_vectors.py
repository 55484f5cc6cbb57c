"""Secrets to test with, put together when a test runs: none stands here as it would look in the wild."""

from __future__ import annotations

import base64
import random
import string

ALNUM = string.ascii_letters + string.digits
DICE = random.Random(7)


def draw(size: int, letters: str = ALNUM) -> str:
    """Random characters with a digit, an upper-case and a lower-case letter among them, where there are any."""
    body = "".join(DICE.choices(letters, k=size - 3))
    wanted = ("7", "Q", "k")
    return body + "".join(char if char in letters else letters[0] for char in wanted)


def pem(kind: str = "RSA ", lines: int = 12, newline: str = "\n") -> str:
    body = newline.join(draw(64, ALNUM + "+/") for _ in range(lines))
    return f"-----BEGIN {kind}PRIVATE " + f"KEY-----{newline}{body}{newline}-----END {kind}PRIVATE " + "KEY-----"


BASE32 = string.ascii_uppercase + "234567"
URLSAFE = ALNUM + "_-"
HEX = "0123456789abcdef"

TOKENS = {
    "aws_access_key": ["AK" + "IA" + draw(16, BASE32), "AS" + "IA" + draw(16, BASE32)],
    "github_token": [
        "gh" + "p_" + draw(36),
        *("gh" + letter + "_" + draw(36) for letter in "ousr"),
        "github" + "_pat_" + draw(22) + "_" + draw(59),
    ],
    "gitlab_token": ["gl" + "pat-" + draw(20, URLSAFE), "gl" + "rt-" + draw(27, URLSAFE)],
    "anthropic_key": ["sk-" + "ant-api03-" + draw(93, URLSAFE) + "AA"],
    "openai_key": [
        "sk-" + "proj-" + draw(120, URLSAFE),
        "sk-" + "svcacct-" + draw(80, URLSAFE),
        "sk-" + draw(48),
        "sk-" + "or-v1-" + draw(64, HEX),
    ],
    "slack_token": [
        "xo" + "xb-" + draw(12, string.digits) + "-" + draw(24),
        "xa" + "pp-1-A0B1C2D3E4F-1234567890123-" + draw(64, HEX),
    ],
    "slack_webhook": ["hooks.slack" + ".com/services/T0AB12CD3/B0AB12CD3/" + draw(24)],
    "stripe_key": ["sk_" + "live_" + draw(24), "rk_" + "test_" + draw(24), "wh" + "sec_" + draw(32)],
    "google_key": ["AI" + "za" + draw(35, URLSAFE)],
    "google_token": [
        "ya" + "29." + draw(60, URLSAFE),
        "GOC" + "SPX-" + draw(28, URLSAFE),
        "1/" + "/0" + draw(60, URLSAFE),
    ],
    "npm_token": ["np" + "m_" + draw(36)],
    "pypi_token": ["py" + "pi-AgEIcHlwaS5vcmc" + draw(120, URLSAFE)],
    "huggingface_token": ["h" + "f_" + draw(34, string.ascii_letters)],
    "sendgrid_key": ["S" + "G." + draw(22, URLSAFE) + "." + draw(43, URLSAFE)],
    "digitalocean_token": ["do" + "p_v1_" + draw(64, HEX)],
    "groq_key": ["gs" + "k_" + draw(52)],
    "docker_token": ["dckr" + "_pat_" + draw(27, URLSAFE)],
    "vault_token": ["hv" + "s." + draw(90, URLSAFE)],
    "age_key": ["AGE-" + "SECRET-KEY-1" + draw(58, string.ascii_uppercase + string.digits)],
    "grafana_token": ["gl" + "sa_" + draw(32) + "_" + draw(8, HEX)],
    "atlassian_token": ["ATA" + "TT3xFfGF0" + draw(170, URLSAFE) + "=1A2B3C4D"],
    "twilio_key": ["S" + "K" + draw(32, HEX)],
    "terraform_token": [draw(14) + ".atlas" + "v1." + draw(67)],
    "databricks_token": ["da" + "pi" + draw(32, HEX)],
    "azure_secret": [draw(3) + "8Q" + "~" + draw(34)],
    "telegram_token": ["12345" + "67890:A" + "A" + draw(33, URLSAFE)],
    "discord_token": ["MTI" + draw(21) + "." + draw(6) + "." + draw(38, URLSAFE)],
    "discord_webhook": ["/api/web" + "hooks/123456789012345678/" + draw(68, URLSAFE)],
    "shopify_token": ["shp" + "at_" + draw(32, HEX)],
    "linear_key": ["lin" + "_api_" + draw(40)],
    "notion_token": ["nt" + "n_" + draw(46)],
    "postman_key": ["PM" + "AK-" + draw(24, HEX) + "-" + draw(34, HEX)],
    "newrelic_key": ["NR" + "AK-" + draw(27, string.ascii_uppercase + string.digits)],
    "sentry_token": ["sn" + "tryu_" + draw(64, HEX)],
    "supabase_token": ["sb" + "p_" + draw(40, HEX)],
    "replicate_token": ["r" + "8_" + draw(37)],
    "perplexity_key": ["pp" + "lx-" + draw(48)],
    "xai_key": ["xa" + "i-" + draw(80)],
    "cerebras_key": ["cs" + "k-" + draw(48, string.ascii_lowercase + string.digits)],
    "tavily_key": ["tv" + "ly-dev-" + draw(32)],
    "langsmith_key": ["ls" + "v2_pt_" + draw(32, HEX) + "_" + draw(10, HEX)],
    "pulumi_token": ["pu" + "l-" + draw(40, HEX)],
    "rubygems_key": ["ruby" + "gems_" + draw(48, HEX)],
    "mailgun_key": ["ke" + "y-" + draw(32, HEX)],
    "buildkite_token": ["bk" + "ua_" + draw(40, HEX)],
    "sourcegraph_token": ["sg" + "p_" + draw(40, HEX)],
    "fly_token": ["fm" + "2_" + draw(120)],
    "jwt": ["ey" + "J" + draw(30, URLSAFE) + ".ey" + "J" + draw(80, URLSAFE) + "." + draw(43, URLSAFE)],
}
ALL_TOKENS = [(kind, token) for kind, tokens in TOKENS.items() for token in tokens]

#: (kind, text, the part that must go)
PASSWORD = "hunter" + "2!x"
OPAQUE = draw(32)
PHRASES = [
    ("url_password", f"postgres://app:{PASSWORD}@db.internal:5432/x", PASSWORD),
    ("url_password", f"redis://:{PASSWORD}@cache", PASSWORD),
    ("url_password", "https://me:p@" + "ss9@example.org/", "p@" + "ss9"),
    ("authorization", f"Authorization: Bearer {OPAQUE}", OPAQUE),
    ("authorization", f"-H 'authorization: token {OPAQUE}'", OPAQUE),
    ("authorization", "Authorization: Basic " + base64.b64encode(b"user:open sesame").decode(), base64.b64encode(b"user:open sesame").decode()),
    ("authorization", f"uses bearer {OPAQUE} here", OPAQUE),
    ("password", f"password={PASSWORD}", PASSWORD),
    ("password", f'PASSWORD: "{PASSWORD}"', PASSWORD),
    ("password", f"export PGPASSWORD='{PASSWORD}'", PASSWORD),
    ("password", 'password = "correct' + 'horse"', "correct" + "horse"),
    ("password", f'{{"db_passwd": "{PASSWORD}"}}', PASSWORD),
    ("password", f"login --password {PASSWORD} --user me", PASSWORD),
    ("password", f"curl -u admin:{PASSWORD} https://x.example", PASSWORD),
    ("password", "password=back\\slash9", "back\\slash9"),
    ("api_key", f"api_key: '{OPAQUE}'", OPAQUE),
    ("api_key", f"apiKey={OPAQUE}", OPAQUE),
    ("aws_secret_key", "aws_secret_access_key = " + (key := draw(40, ALNUM + "+/")), key),
    ("aws_secret_key", f'"SecretAccessKey": "{key}"', key),
    ("aws_secret_key", f"AWS Secret Access Key [None]: {key}", key),
    ("azure_key", f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={key}{key}a1==;EndpointSuffix=y", f"{key}{key}a1=="),
    ("azure_signature", "https://x.blob.example/c?sv=1&sig=" + (sign := draw(44) + "%3D"), sign),
    ("cookie", f"Cookie: theme=dark; sid={OPAQUE}", f"theme=dark; sid={OPAQUE}"),
    ("cookie", f'"set-cookie": "session={OPAQUE}; Path=/"', f"session={OPAQUE}; Path=/"),
    ("password", f"machine api.example login ann password {PASSWORD}", PASSWORD),
    ("password", f"machine api.example\n  login ann\n  password {PASSWORD}\n", PASSWORD),
    ("password", f"Server=db;User Id=sa;Pwd={PASSWORD};Encrypt=yes", PASSWORD),
    ("password", f"Server=db;User Id=sa;Password={PASSWORD};", PASSWORD),
    ("password", f"MYSQL_PWD={PASSWORD} mysql", PASSWORD),
    ("password", f'{{"user": "me", "pass": "{PASSWORD}"}}', PASSWORD),
    ("password", f"q=1&password%3D{PASSWORD}", PASSWORD),
    ("password", f"&quot;password&quot;: &quot;{PASSWORD}&quot;", PASSWORD),
    ("url_password", "url=postgres%3A%2F%2Fapp%3A" + (plain := draw(12)) + "%40db.internal", plain),
    ("authorization", f"Authorization%3A%20Bearer%20{OPAQUE}", OPAQUE),
    ("api_key", f"private_key = 0x{(hexed := draw(64, HEX))}", f"0x{hexed}"),
    ("secret", f'clientSecret: "{OPAQUE}"', OPAQUE),
    ("token", f'"refresh_token":"{OPAQUE}"', OPAQUE),
    ("token", f"//registry.example/:_authToken={OPAQUE}", OPAQUE),
    ("token", f'"auth": "{OPAQUE}"', OPAQUE),
]  # fmt: skip
