"""Synthetic secrets and look-alikes: what masking must find, and what it must leave alone.

`positives` yields (kind, text, secret): every kind several times, each time with another body, in another surrounding.
`look_alikes` yields texts without a secret: hashes, ids, images, code, help texts, placeholders and prose. Shapes are
written here from the public descriptions of the services, without regard to the rules of `everturn.secrets`.
"""

from __future__ import annotations

import base64
import random
import string
import uuid
from collections.abc import Callable, Iterator

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "_-"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
BASE64 = ALNUM + "+/"
BASE58 = "".join(char for char in ALNUM if char not in "0OIl")

_WORDS = (
    "abandon ability able about above absent absorb abstract absurd abuse access accident account accuse achieve acid acoustic acquire "
    "across actor adapt adjust admit adult advance advice aerobic affair afford agent agree ahead airport aisle alarm album alcohol"
).split()
_PROSE = (
    "the parser reads a line of the file and returns its tokens when key or value are missing it raises an error that names the "
    "session and the password field stays empty until the user has entered a secret question about the access key of the house"
).split()


class Dice(random.Random):
    """Random strings of given letters, with a digit and letters of both cases where the alphabet has them."""

    def draw(self, letters: str, size: int) -> str:
        body = self.choices(letters, k=size)
        for at, char in enumerate(char for char in ("7", "q", "Q") if char in letters):
            body[size // 2 + at if size > 6 else at] = char
        return "".join(body)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.getrandbits(128), version=4))

    def password(self) -> str:
        return self.draw(string.ascii_letters, 6) + self.choice("!#%+?") + self.draw(string.digits, 3)


#: kind: parts that follow each other: literal text, or (alphabet, size), or "uuid".
_Part = str | tuple[str, int]
_TOKENS: dict[str, tuple[_Part, ...]] = {
    "1password": ("ops_eyJ", (ALNUM, 200)),
    "adobe": ("p8e-", (ALNUM, 32)),
    "age": ("AGE-SECRET-KEY-1", (UPPER, 58)),
    "airtable": ("pat", (ALNUM, 14), ".", (HEX, 64)),
    "aiven": ("AVNS_", (URLSAFE, 19)),
    "akamai": ("akab-", (LOWER, 16), "-", (LOWER, 16)),
    "alchemy": ("alchemy.com/v2/", (URLSAFE, 32)),
    "alibaba": ("LTAI", (ALNUM, 20)),
    "anthropic": ("sk-ant-api03-", (URLSAFE, 93), "AA"),
    "anyscale": ("esecret_", (ALNUM, 26)),
    "artifactory": ("AKCp", (ALNUM, 69)),
    "artifactory reference": ("cmVmdGtu", (ALNUM, 56)),
    "asana": ("1/1", (string.digits, 15), ":", (HEX, 32)),
    "asana 2": ("2/1", (string.digits, 15), "/1", (string.digits, 15), ":", (HEX, 32)),
    "atlassian": ("ATATT3xFfGF0", (URLSAFE, 170), "=1A2B3C4D"),
    "aws": ("AKIA", (string.ascii_uppercase + "234567", 16)),
    "aws bedrock": ("ABSK", (BASE64, 120), "="),
    "aws session": ("IQoJb3JpZ2lu", (BASE64, 300), "=="),
    "azure devops": ((ALNUM, 76), "AZDO", (ALNUM, 4)),
    "azure secret": ((ALNUM, 3), "8Q~", (ALNUM, 34)),
    "bitbucket": ("ATBB", (ALNUM, 32)),
    "bitwarden": ("0.", "uuid", ".", (ALNUM, 30), ":", (BASE64, 22), "=="),
    "brave": ("BSA", (URLSAFE, 27)),
    "brevo": ("xkeysib-", (HEX, 64), "-", (ALNUM, 16)),
    "buildkite": ("bkua_", (HEX, 40)),
    "buildkite agent": ("bkaj_", (ALNUM, 50)),
    "cerebras": ("csk-", (LOWER, 48)),
    "circleci": ("CCIPAT_", (ALNUM, 22), "_", (HEX, 40)),
    "clickup": ("pk_", (string.digits, 8), "_", (UPPER, 32)),
    "clojars": ("CLOJARS_", (LOWER, 60)),
    "cloudflare origin": ("v1.0-", (HEX, 24), "-", (HEX, 146)),
    "cockroach": ("CCDB1_", (ALNUM, 22), "_", (ALNUM, 40)),
    "contentful": ("CFPAT-", (URLSAFE, 43)),
    "crates.io": ("cio", (ALNUM, 32)),
    "cursor": ("key_", (HEX, 64)),
    "databricks": ("dapi", (HEX, 32)),
    "digitalocean": ("dop_v1_", (HEX, 64)),
    "discord": ("MTI", (ALNUM, 21), ".", (ALNUM, 6), ".", (URLSAFE, 38)),
    "docker": ("dckr_pat_", (URLSAFE, 27)),
    "doppler": ("dp.pt.", (ALNUM, 43)),
    "doppler service": ("dp.st.prd.", (ALNUM, 43)),
    "dropbox": ("sl.", (URLSAFE, 135)),
    "duffel": ("duffel_live_", (URLSAFE, 43)),
    "dynatrace": ("dt0c01.", (UPPER, 24), ".", (UPPER, 64)),
    "e2b": ("e2b_", (HEX, 40)),
    "easypost": ("EZAK", (ALNUM, 54)),
    "elastic": ("essu_", (BASE64, 60), "=="),
    "elevenlabs": ("sk_", (HEX, 48)),
    "facebook": ("EAACEdEose0cBA", (ALNUM, 120)),
    "fcm": ("AAAA", (ALNUM, 7), ":APA91b", (URLSAFE, 134)),
    "figma": ("figd_", (URLSAFE, 40)),
    "firecrawl": ("fc-", (HEX, 32)),
    "fireworks": ("fw_", (ALNUM, 24)),
    "flutterwave": ("FLWSECK_TEST-", (ALNUM, 32), "-X"),
    "fly": ("fm2_", (ALNUM, 120)),
    "frameio": ("fio-u-", (URLSAFE, 64)),
    "github": ("ghp_", (ALNUM, 36)),
    "github app": ("ghs_", (ALNUM, 36)),
    "github fine-grained": ("github_pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    "gitlab": ("glpat-", (URLSAFE, 20)),
    "gitlab runner": ("GR1348941", (URLSAFE, 20)),
    "google": ("AIza", (URLSAFE, 35)),
    "google client": ("GOCSPX-", (URLSAFE, 28)),
    "google oauth": ("ya29.", (URLSAFE, 60)),
    "grafana": ("glsa_", (ALNUM, 32), "_", (HEX, 8)),
    "grafana old": ("eyJrIjoi", (ALNUM, 80), "=="),
    "groq": ("gsk_", (ALNUM, 52)),
    "harness": ("pat.", (ALNUM, 22), ".", (HEX, 24), ".", (ALNUM, 20)),
    "helicone": ("sk-helicone-", (LOWER, 40)),
    "heroku": ("HRKU-AA", (URLSAFE, 58)),
    "honeycomb": ("hcaik_", (LOWER, 58)),
    "hubspot": ("pat-na1-", "uuid"),
    "huggingface": ("hf_", (ALNUM, 34)),
    "infracost": ("ico-", (ALNUM, 32)),
    "infura": ("infura.io/v3/", (HEX, 32)),
    "intercom": ("dG9rOg", (BASE64, 60), "="),
    "jina": ("jina_", (ALNUM, 60)),
    "jwt": ("eyJ", (URLSAFE, 30), ".eyJ", (URLSAFE, 80), ".", (URLSAFE, 43)),
    "langfuse": ("sk-lf-", "uuid"),
    "langsmith": ("lsv2_pt_", (HEX, 32), "_", (HEX, 10)),
    "launchdarkly": ("sdk-", "uuid"),
    "lichess": ("lip_", (ALNUM, 20)),
    "linear": ("lin_api_", (ALNUM, 40)),
    "linkedin": ("WPL_AP1.", (ALNUM, 16), ".", (ALNUM, 8), "=="),
    "mailchimp": ((HEX, 32), "-us12"),
    "mailersend": ("mlsn.", (HEX, 64)),
    "mailgun": ("key-", (HEX, 32)),
    "mandrill": ("md-", (URLSAFE, 22)),
    "mapbox": ("sk.eyJ", (ALNUM, 60), ".", (URLSAFE, 22)),
    "maxmind": ((ALNUM, 6), "_", (ALNUM, 29), "_mmk"),
    "modal": ("ak-", (ALNUM, 22)),
    "mollie": ("live_", (ALNUM, 30)),
    "mongodb": ("mdb_sa_sk_", (URLSAFE, 40)),
    "neon": ("napi_", (LOWER, 64)),
    "netlify": ("nfp_", (ALNUM, 36)),
    "newrelic": ("NRAK-", (UPPER, 27)),
    "ngrok": ("ngrok_api_", (ALNUM, 40)),
    "nostr": ("nsec1", ("023456789acdefghjklmnpqrstuvwxyz", 58)),
    "notion": ("ntn_", (ALNUM, 46)),
    "npm": ("npm_", (ALNUM, 36)),
    "nuget": ("oy2", (LOWER, 43)),
    "nvidia": ("nvapi-", (URLSAFE, 64)),
    "octopus": ("API-", (UPPER, 26)),
    "openai": ("sk-proj-", (URLSAFE, 120)),
    "openai old": ("sk-", (ALNUM, 48)),
    "openrouter": ("sk-or-v1-", (HEX, 64)),
    "openshift": ("sha256~", (URLSAFE, 43)),
    "packagist": ("packagist_uut_", (HEX, 68)),
    "paypal": ("access_token$production$", (LOWER, 16), "$", (HEX, 32)),
    "perplexity": ("pplx-", (ALNUM, 48)),
    "pinecone": ("pcsk_", (ALNUM, 70)),
    "plaid": ("access-production-", "uuid"),
    "planetscale": ("pscale_tkn_", (URLSAFE, 43)),
    "polar": ("polar_oat_", (ALNUM, 43)),
    "posthog": ("phx_", (ALNUM, 43)),
    "postman": ("PMAK-", (HEX, 24), "-", (HEX, 34)),
    "prefect": ("pnu_", (ALNUM, 36)),
    "pulumi": ("pul-", (HEX, 40)),
    "pypi": ("pypi-AgEIcHlwaS5vcmc", (URLSAFE, 120)),
    "razorpay": ("rzp_live_", (ALNUM, 14)),
    "readme": ("rdme_", (LOWER, 70)),
    "render": ("rnd_", (ALNUM, 28)),
    "replicate": ("r8_", (ALNUM, 37)),
    "resend": ("re_", (ALNUM, 8), "_", (ALNUM, 24)),
    "rubygems": ("rubygems_", (HEX, 48)),
    "runpod": ("rpa_", (UPPER, 40)),
    "salesforce": ("00D", (ALNUM, 12), "!", (ALNUM, 96)),
    "scaleway": ("SCW", (UPPER, 17)),
    "scalingo": ("tk-us-", (URLSAFE, 48)),
    "sendgrid": ("SG.", (URLSAFE, 22), ".", (URLSAFE, 43)),
    "sentry": ("sntryu_", (HEX, 64)),
    "shippo": ("shippo_live_", (HEX, 40)),
    "shopify": ("shpat_", (HEX, 32)),
    "slack": ("xoxb-", (string.digits, 12), "-", (ALNUM, 24)),
    "slack webhook": ("https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/", (ALNUM, 24)),
    "snyk": ("snyk_uat.", (LOWER, 8), ".", (URLSAFE, 70)),
    "sonar": ("sqp_", (LOWER, 40)),
    "sourcegraph": ("sgp_", (HEX, 40)),
    "square": ("sq0atp-", (URLSAFE, 22)),
    "square secret": ("sq0csp-", (URLSAFE, 43)),
    "stripe": ("sk_live_", (ALNUM, 24)),
    "stripe webhook": ("whsec_", (ALNUM, 32)),
    "stytch": ("secret-live-", (URLSAFE, 36)),
    "supabase": ("sbp_", (HEX, 40)),
    "supabase secret": ("sb_secret_", (URLSAFE, 31)),
    "tailscale": ("tskey-auth-", (ALNUM, 12), "CNTRL-", (ALNUM, 32)),
    "tavily": ("tvly-dev-", (ALNUM, 32)),
    "teams webhook": ("webhookb2/", "uuid", "@", "uuid", "/IncomingWebhook/", (HEX, 32), "/", "uuid"),
    "telegram": ((string.digits, 10), ":AA", (URLSAFE, 33)),
    "tencent": ("AKID", (ALNUM, 32)),
    "terraform": ((ALNUM, 14), ".atlasv1.", (ALNUM, 67)),
    "together": ("tgp_v1_", (URLSAFE, 43)),
    "trello": ("ATTA", (HEX, 64), (UPPER, 8)),
    "twilio": ("SK", (HEX, 32)),
    "twitch": ("oauth:", (LOWER, 30)),
    "twitter": ("AAAAAAAAAAAAAAAAAAAAA", (ALNUM, 20), "%3D", (ALNUM, 50)),
    "typeform": ("tfp_", (URLSAFE, 59)),
    "unkey": ("unkey_", (ALNUM, 24)),
    "vault": ("hvs.", (URLSAFE, 90)),
    "vercel": ("vcp_", (ALNUM, 56)),
    "voyage": ("pa-", (URLSAFE, 43)),
    "wandb": ("wandb_v1_", (URLSAFE, 70)),
    "workos": ("sk_test_a2V5", (ALNUM, 60)),
    "xai": ("xai-", (ALNUM, 80)),
    "xprv": ("xprv", (BASE58, 107)),
    "yandex": ("AQVN", (URLSAFE, 36)),
}  # fmt: skip

_Phrase = Callable[[Dice], tuple[str, str]]  # text and secret


def _said(form: str, draw: Callable[[Dice], str] = Dice.password) -> _Phrase:
    def make(dice: Dice) -> tuple[str, str]:
        secret = draw(dice)
        return form.replace("@@", secret), secret

    return make


def _opaque(dice: Dice) -> str:
    return dice.draw(ALNUM, 32)


def _seed(dice: Dice) -> str:
    return " ".join(dice.choices(_WORDS, k=12))


def _crypt(form: str, letters: str, *sizes: int) -> Callable[[Dice], str]:
    return lambda dice: form.format(*(dice.draw(letters, size) for size in sizes))


_CRYPT = ALNUM + "./"
_PHRASES: dict[str, tuple[_Phrase, ...]] = {
    "mysql -p": (_said("mysql -u root -p@@ -h db shop"), _said("mysqldump --single-transaction -uapp -p'@@' shop > a.sql")),
    "sshpass": (_said("sshpass -p @@ ssh me@host"), _said('sshpass -p "@@" scp a b:')),
    "docker login": (_said("docker login -u me -p @@ registry.example.org"),),
    "redis-cli": (_said("redis-cli -h cache -a @@ ping"),),
    "mongosh": (_said("mongosh --host db -u app -p @@"),),
    "smbclient": (_said("smbclient //box/share -U me%@@"),),
    "ldapsearch": (_said("ldapsearch -x -D cn=admin -w @@ -b dc=x"),),
    "openssl": (_said("openssl rsa -in a.pem -passin pass:@@"),),
    "zip": (_said("zip -r -P @@ a.zip folder"),),
    "7z": (_said("7z a -p@@ a.7z folder"),),
    "htpasswd": (_said("htpasswd -cb .htpasswd me @@"),),
    "sqlcmd": (_said("sqlcmd -S host -U sa -P @@"),),
    "identified by": (_said("CREATE USER 'app'@'%' IDENTIFIED BY '@@';"),),
    "password is": (
        _said("my password is @@"), _said("The password for the router is @@, keep it"), _said('the password is "@@".'),
        _said("Passwort lautet @@"), _said("la contraseña es @@"), _said("passphrase is @@"),
    ),
    "pgpass": (_said("db.internal:5432:shop:app:@@"), _said("*:*:shop:app:@@")),
    "netrc": (_said("machine api.example.org login me password @@"),),
    "putty": (
        lambda dice: (
            f"PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{(key := dice.draw(BASE64, 60))}\nPrivate-MAC: 00ff",
            key,
        ),
    ),
    "private key": (
        lambda dice: (
            "-----BEGIN RSA PRIVATE " + f"KEY-----\n{(key := dice.draw(BASE64, 64))}\n{dice.draw(BASE64, 64)}\n-----END RSA PRIVATE KEY-----",
            key,
        ),
    ),
    "seed phrase": (_said("seed phrase: @@", _seed), _said('"mnemonic": "@@"', _seed), _said("recovery phrase is @@", _seed)),
    "bcrypt": (_said("hash @@ in the table", _crypt("$2b$12${0}", _CRYPT, 53)),),
    "shadow": (_said("root:@@:19000:0:99999:7:::", _crypt("$6${0}${1}", _CRYPT, 16, 86)),),
    "yescrypt": (_said("me:@@:19000::::::", _crypt("$y$j9T${0}${1}", _CRYPT, 22, 43)),),
    "argon2": (_said("stored @@", _crypt("$argon2id$v=19$m=65536,t=3,p=4${0}${1}", BASE64, 22, 43)),),
    "django": (_said("stored @@", _crypt("pbkdf2_sha256$600000${0}${1}=", ALNUM, 22, 43)),),
    "wifi": (_said('network={ ssid="home" psk="@@" }'),),
    "wireguard": (_said("PrivateKey = @@", lambda d: d.draw(BASE64, 43) + "="), _said("PresharedKey = @@", lambda d: d.draw(BASE64, 43) + "=")),
    "okta": (_said("Authorization: SSWS @@", lambda d: "00" + d.draw(URLSAFE, 40)),),
    "ethereum": (_said("private key: @@", lambda d: "0x" + d.draw(HEX, 64)),),
    "otp": (_said("TOTP secret: @@", lambda d: d.draw(string.ascii_uppercase + "234567", 32)),),
    "url": (_said("postgres://app:@@@db.internal:5432/x".replace("@@@", "@@" + "@")), _said("redis://:@@" + "@cache:6379/0", lambda d: d.draw(ALNUM, 12))),
    "bearer": (_said("curl -H 'Authorization: Bearer @@' https://x", _opaque),),
    "basic": (_said("Authorization: Basic @@", lambda d: base64.b64encode(f"me:{d.password()}".encode()).decode()),),
    "cookie": (_said("Cookie: sessionid=@@; theme=dark", _opaque),),
    "curl -u": (_said("curl -u admin:@@ https://x.example"),),
    "assigned password": (_said("DB_PASSWORD=@@"), _said('{"password": "@@"}'), _said("password: '@@'")),
    "assigned key": (_said("API_KEY=@@", _opaque), _said('{"apiKey": "@@"}', _opaque), _said("client_secret = '@@'", _opaque)),
    "assigned token": (_said("AUTH_TOKEN=@@", _opaque), _said("access_token: @@", _opaque)),
    "aws secret": (_said("aws_secret_access_key = @@", lambda d: d.draw(BASE64, 40)),),
    "azure account": (_said("AccountName=x;AccountKey=@@;EndpointSuffix=y", lambda d: d.draw(BASE64, 86) + "=="),),
    "salt": (_said("SESSION_SALT=@@", _opaque), _said("signing_key: @@", _opaque)),
}  # fmt: skip

#: Surroundings of a token.
_AROUND = (
    "use {} here", "{}", "TOKEN={}", 'export X="{}"', '{{"value": "{}"}}', "- name: x\n  value: {}", "curl -H 'X-Api: {}' https://x",
    "line one\\n{}\\nline three", "the old one ({}) is revoked", "`{}`", "client = Client('{}')", "[{}](https://example.org)",
)  # fmt: skip


def kinds() -> list[str]:
    return [*_TOKENS, *_PHRASES]


def positives(each: int = 12, seed: int = 21) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, text, secret), so many of each kind."""
    dice = Dice(seed)
    for kind, parts in _TOKENS.items():
        for n in range(each):
            token = "".join(_draw_part(dice, part) for part in parts)
            yield kind, _AROUND[n % len(_AROUND)].format(token), token
    for kind, forms in _PHRASES.items():
        for n in range(each):
            yield kind, *forms[n % len(forms)](dice)


def _draw_part(dice: Dice, part: _Part) -> str:
    if isinstance(part, tuple):
        return dice.draw(*part)
    return dice.uuid() if part == "uuid" else part


_Text = Callable[[Dice], str]
_LOOK_ALIKES: tuple[_Text, ...] = (
    lambda d: f"commit {d.draw(HEX, 40)}",
    lambda d: f"sha256:{d.draw(HEX, 64)}",
    lambda d: f"md5 {d.draw(HEX, 32)}  file.tar.gz",
    lambda d: f'"integrity": "sha512-{d.draw(BASE64, 86)}=="',
    lambda d: f"index {d.draw(HEX, 7)}..{d.draw(HEX, 7)} 100644",
    lambda d: f"request id {d.uuid()} took 12 ms",
    lambda d: f'"id": "toolu_01{d.draw(ALNUM, 22)}"',
    lambda d: f'"id": "msg_01{d.draw(ALNUM, 22)}", "type": "message"',
    lambda d: f"call_{d.draw(ALNUM, 24)} returned",
    lambda d: f"req_{d.draw(LOWER, 24)}",
    lambda d: f"chatcmpl-{d.draw(ALNUM, 29)}",
    lambda d: f"arn:aws:iam::{d.draw(string.digits, 12)}:role/deploy-{d.draw(LOWER, 8)}",
    lambda d: f"pod/web-{d.draw(LOWER, 10)}-{d.draw(LOWER, 5)} Running",
    lambda d: f"image registry.example.org/app@sha256:{d.draw(HEX, 64)}",
    lambda d: f'ETag: "{d.draw(HEX, 32)}"',
    lambda d: f"01{d.draw(UPPER, 24)} is a ULID",
    lambda d: f"snowflake {d.randrange(10**17, 10**18)}",
    lambda d: f"data:image/png;base64,iVBORw0KGgo{base64.b64encode(d.randbytes(150)).decode()}",
    lambda d: f"<div class=\"css-{d.draw(LOWER, 7)} {d.draw(string.ascii_letters, 6)}\">",
    lambda d: f"https://example.org/d/{d.draw(URLSAFE, 44)}/edit#gid=0",
    lambda d: f"https://cdn.example.org/assets/main.{d.draw(HEX, 20)}.js",
    lambda d: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{d.draw(BASE64, 43)} me@box",
    lambda d: f"-----BEGIN CERTIFICATE-----\n{d.draw(BASE64, 64)}\n-----END CERTIFICATE-----",
    lambda d: f"-----BEGIN PUBLIC KEY-----\n{d.draw(BASE64, 64)}\n-----END PUBLIC KEY-----",
    lambda d: f"0x{d.draw(HEX, 40)} is an address",
    lambda d: f"tx 0x{d.draw(HEX, 64)}",
    lambda d: f"trace_id={d.draw(HEX, 32)} span_id={d.draw(HEX, 16)}",
    lambda d: f"cache_key = '{d.draw(HEX, 40)}'",
    lambda d: f"primary_key={d.randrange(10**6)}",
    lambda d: f"idempotency key {d.uuid()}",
    lambda d: f"session {d.uuid()} ended",
    lambda d: f"nonce {d.draw(HEX, 24)}, block {d.randrange(10**8)}",
    lambda d: " ".join(d.choices(_PROSE, k=25)),
    lambda d: " ".join(d.choices(_PROSE, k=8)).capitalize() + ".",
    lambda d: f"{d.choice(('password', 'passphrase', 'token'))} is {d.choice(('required', 'invalid', 'missing', 'too short', 'set', 'stored hashed', 'wrong', 'not checked here'))}",
    lambda d: f"the password must have {d.randrange(8, 20)} characters",
    lambda d: f"-p, --password {d.choice(('PASSWORD', 'TEXT', '<password>', 'VALUE'))}  the password of the {d.choice(_PROSE)}",
    lambda d: f"mysql -u root -p {d.choice(('shop', 'app', 'test'))} < dump.sql",
    lambda d: f"mkdir -p build/{d.choice(_PROSE)}{d.randrange(99)} && cp -p a b",
    lambda d: f"docker run -p {d.randrange(1024, 9999)}:80 nginx",
    lambda d: f"ssh -p {d.randrange(1024, 9999)} me@host",
    lambda d: f"DB_PASSWORD=${{{d.choice(('DB_PASSWORD', 'SECRET', 'PASS'))}}}",
    lambda d: f"token: ${{{{ secrets.{d.choice(('GITHUB_TOKEN', 'NPM_TOKEN', 'DEPLOY_KEY'))} }}}}",
    lambda d: f"API_KEY={d.choice(('<your-key>', 'your_api_key_here', 'xxxxxxxxxxxxxxxx', 'changeme', '***', 'sk-...'))}",
    lambda d: f"def connect(user: str, password: str = '', token: str | None = None, n={d.randrange(99)}) -> None:",
    lambda d: f"const token = await getToken(session{d.randrange(99)});",
    lambda d: f"secret_name: my-app-tls-v{d.randrange(9)}",
    lambda d: f"self.api_key = settings.{d.choice(('api_key', 'openai_key', 'token'))}",
    lambda d: f"if password == other_password{d.randrange(9)}: raise WrongPassword",
    lambda d: f"src/{d.choice(_PROSE)}.py:{d.randrange(900)}:{d.randrange(80)}: error: unexpected token",
    lambda d: f"max_tokens={d.randrange(100, 9000)}, total_tokens: {d.randrange(10**6)}",
    lambda d: f"version 1.{d.randrange(99)}.{d.randrange(99)}-beta.{d.randrange(9)}+{d.draw(HEX, 8)}",
    lambda d: f"2026-01-{d.randrange(10, 28)}T10:{d.randrange(10, 59)}:00.{d.randrange(100, 999)}Z INFO worker-{d.randrange(99)} done",
    lambda d: f"function {d.draw(string.ascii_lowercase, 8)}({d.draw(string.ascii_lowercase, 2)}){{return {d.draw(ALNUM, 6)}}}",
    lambda d: f"key_{d.randrange(99)}_{d.choice(_PROSE)} api_{d.choice(_PROSE)}_v2 secret_{d.choice(_PROSE)}",
    lambda d: f"localhost:{d.randrange(1024, 9999)} db:5432 cache:6379",
    lambda d: f"psk_mode = {d.choice(('wpa2', 'wpa3'))}; seed = {d.randrange(10**6)}",
    lambda d: f"Lorem ipsum dolor sit amet, consectetur {' '.join(d.choices(_PROSE, k=12))}.",
    lambda d: base64.b64encode(d.randbytes(90)).decode(),
    lambda d: " ".join(d.draw(HEX, 8) for _ in range(8)),
    lambda d: f"Cookie: theme=dark; lang={d.choice(('en', 'de', 'fr'))}; width={d.randrange(2000)}",
    lambda d: f"https://user@example.org:8443/path/{d.randrange(10**6)}",
    lambda d: f"login: success for user{d.randrange(999)} -p ok",
    lambda d: f"{{\"prompt_tokens\": {d.randrange(999)}, \"token_type\": \"bearer\", \"expires_in\": 3600}}",
)  # fmt: skip


def look_alikes(n: int = 20_000, seed: int = 22) -> Iterator[str]:
    """Yield texts without a secret."""
    dice = Dice(seed)
    for number in range(n):
        yield _LOOK_ALIKES[number % len(_LOOK_ALIKES)](dice)
