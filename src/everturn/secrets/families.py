"""Token families of single services: a mark that all tokens of a family begin with or contain, and what follows it.

One line per shape: kind, mark, and the pattern of the rest. `rules` looks for the marks first, so a family costs next to
nothing where its mark is missing. A short mark must not be within a word, since it occurs in long runs by chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from everturn.text.lazy_pattern import lazy_pattern

#: Kind, start and end of a secret.
Span = tuple[str, int, int]
#: A pattern in RE2's syntax that data must contain before it is worth searching, and the search.
Search = tuple[bytes, Callable[[bytes], list[Span]]]

_UUID = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_W = "[A-Za-z0-9_-]"
_A = "[A-Za-z0-9]"

#: kind, mark, rest.
_TABLE = f"""
1password_token       ops_eyJ         {_A}{{100,}}
adobe_secret          p8e-            [A-Za-z0-9]{{32}}(?!{_A})
aiven_password        AVNS_           {_W}{{19,40}}
airtable_token        pat             {_A}{{14}}\\.[a-f0-9]{{64}}
akamai_token          akab-           [a-z0-9]{{16}}-[a-z0-9]{{16}}
alibaba_key           LTAI            {_A}{{16,24}}(?!{_A})
anyscale_key          esecret_        {_A}{{20,}}
artifactory_key       AKCp            {_A}{{60,80}}(?!{_A})
artifactory_token     cmVmdGtu        {_A}{{50,80}}(?!{_A})
asana_token           1/1             (?<=1/1)[0-9]{{12,16}}(?::|%3A)[a-f0-9]{{32}}
asana_token           2/1             (?<=2/1)[0-9]{{12,16}}/[0-9]{{12,17}}(?::|%3A)[a-f0-9]{{32}}
aws_session_token     IQoJb3JpZ2lu    [A-Za-z0-9+/=]{{100,}}
aws_session_token     FwoGZXIvYXdz    [A-Za-z0-9+/=]{{100,}}
aws_bedrock_key       ABSK            [A-Za-z0-9+/]{{100,}}={{0,2}}
azure_devops_token    AZDO            (?<={_A}{{76}}AZDO){_A}{{4}}(?!{_A})
bitbucket_token       ATBB            {_A}{{28,40}}(?!{_A})
bitbucket_token       ATCTT3          {_W}{{60,}}=?
bitwarden_token       0.              (?<=0\\.){_UUID}\\.{_A}{{25,35}}:[A-Za-z0-9+/]{{20,}}={{0,2}}
brave_key             BSA             {_W}{{24,32}}(?!{_W})
brevo_key             xkeysib-        [a-f0-9]{{64}}-{_A}{{16}}
brevo_key             xsmtpsib-       [a-f0-9]{{64}}-{_A}{{16}}
buildkite_agent_token bkaj_           {_W}{{40,}}
buildkite_agent_token bkct_           {_W}{{40,}}
circleci_token        CCIPAT_         {_A}{{22}}_[a-f0-9]{{40}}
circleci_token        CCIPRJ_         {_A}{{22}}_[a-f0-9]{{40}}
clickup_token         pk_             [0-9]{{5,12}}_[A-Z0-9]{{32}}(?!{_A})
clojars_token         CLOJARS_        [a-z0-9]{{60}}
cloudflare_key        v1.0-           [a-f0-9]{{24}}-[a-f0-9]{{100,}}
cockroach_key         CCDB1_          {_A}{{22}}_{_A}{{40}}
contentful_token      CFPAT-          {_W}{{43}}
cratesio_token        cio             {_A}{{32}}(?!{_A})
cursor_key            key_            [a-f0-9]{{64}}(?!{_A})
doppler_token         dp.             (?:pt|st|ct|sa|scim|audit)\\.(?:[a-z0-9_-]{{2,40}}\\.)?{_A}{{40,44}}(?!{_A})
dropbox_token         sl.             (?:u\\.)?{_W}{{100,}}
duffel_token          duffel_         (?:test|live)_{_W}{{43}}
dynatrace_token       dt0c01.         [A-Z0-9]{{24}}\\.[A-Z0-9]{{64}}
dynatrace_token       dt0s01.         [A-Z0-9]{{24}}\\.[A-Z0-9]{{64}}
e2b_key               e2b_            [a-f0-9]{{40}}
easypost_key          EZAK            {_A}{{54}}(?!{_A})
easypost_key          EZTK            {_A}{{54}}(?!{_A})
elastic_key           essu_           [A-Za-z0-9+/=]{{40,}}
elevenlabs_key        sk_             [a-f0-9]{{48}}(?!{_A})
facebook_token        EAA             [A-Za-z0-9]{{80,}}(?!{_W})
fcm_key               APA91b          (?<=:APA91b){_W}{{120,}}
figma_token           figd_           {_W}{{38,}}
figma_token           figo_           {_W}{{38,}}
firecrawl_key         fc-             [a-f0-9]{{32}}(?!{_A})
fireworks_key         fw_             {_A}{{22,}}(?!{_W})
flutterwave_key       FLWSECK         (?:_TEST)?-[A-Za-z0-9]{{12,}}(?:-X)?
frameio_token         fio-u-          {_W}{{60,}}
gitlab_runner_token   GR1348941       {_W}{{20,}}
grafana_key           eyJrIjoi        [A-Za-z0-9+/=_-]{{60,}}
harness_token         pat.            {_A}{{22}}\\.[a-f0-9]{{24}}\\.{_A}{{20}}(?!{_A})
heroku_key            HRKU-           (?:AA{_W}{{58}}|{_UUID})
honeycomb_key         hcaik_          [a-z0-9]{{50,}}
honeycomb_key         hcalk_          [a-z0-9]{{50,}}
hubspot_token         pat-            (?:na|eu)[0-9]-{_UUID}
infracost_key         ico-            {_A}{{32}}(?!{_A})
infura_key            infura.io/v3/   [a-f0-9]{{32}}
alchemy_key           alchemy.com/v2/ {_W}{{32}}
intercom_token        dG9rO           (?:g|[A-Za-z0-9+/])[A-Za-z0-9+/]{{50,}}={{0,2}}
jina_key              jina_           [A-Za-z0-9_-]{{40,}}
langfuse_key          sk-lf-          {_UUID}
helicone_key          sk-helicone-    {_W}{{20,}}
launchdarkly_key      sdk-            {_UUID}
launchdarkly_key      api-            {_UUID}
lichess_token         lip_            {_A}{{20,}}
linkedin_token        WPL_AP          [0-9]\\.{_A}{{16}}\\.{_A}{{8}}==?
mailchimp_key         -us             (?<=[a-f0-9]{{32}}-us)[0-9]{{1,2}}(?!{_A})
mailersend_token      mlsn.           [a-f0-9]{{64}}
mandrill_key          md-             {_W}{{22}}(?!{_W})
mapbox_token          sk.eyJ          {_W}{{40,}}\\.{_W}{{22}}
maxmind_key           _mmk            (?<={_A}{{6}}_{_A}{{29}}_mmk)(?!{_A})
modal_token           ak-             {_A}{{22}}(?!{_W})
modal_token           as-             {_A}{{22}}(?!{_W})
mollie_key            live_           {_A}{{30}}(?!{_W})
mongodb_secret        mdb_sa_sk_      {_W}{{40,}}
neon_key              napi_           [a-z0-9]{{60,}}
netlify_token         nfp_            {_A}{{36}}
netlify_token         nfc_            {_A}{{36}}
ngrok_token           ngrok_          (?:api_)?{_A}{{30,}}
nostr_key             nsec1           [02-9ac-hj-np-z]{{58}}
nuget_key             oy2             [a-z0-9]{{43}}(?!{_A})
nvidia_key            nvapi-          {_W}{{60,}}
octopus_key           API-            [A-Z0-9]{{26,32}}(?!{_A})
openshift_token       sha256~         {_W}{{43}}
packagist_token       packagist_      (?:uut|ort|out|act)_[a-f0-9]{{60,}}
paypal_token          access_token$   (?:production|sandbox)\\$[a-z0-9]{{16}}\\$[a-f0-9]{{32}}
pinecone_key          pcsk_           [A-Za-z0-9_]{{50,}}
plaid_token           access-         (?:sandbox|development|production)-{_UUID}
planetscale_token     pscale_         (?:tkn|pw|oauth|otkn)_[A-Za-z0-9_.-]{{32,64}}
polar_token           polar_          (?:oat|pat|whs)_{_A}{{32,}}
prefect_token         pnu_            {_A}{{36}}
prefect_token         pnb_            {_A}{{36}}
posthog_key           phx_            {_A}{{40,}}
razorpay_key          rzp_live_       {_A}{{14}}
razorpay_key          rzp_test_       {_A}{{14}}
readme_key            rdme_           [a-z0-9]{{60,}}
render_key            rnd_            {_A}{{24,}}
resend_key            re_             (?=[A-Za-z_]{{0,30}}[0-9])[A-Za-z0-9]{{8}}_{_A}{{20,}}
runpod_key            rpa_            {_A}{{36,}}
salesforce_token      00D             {_A}{{12,15}}![A-Za-z0-9_.]{{80,}}
scalingo_token        tk-us-          {_W}{{48}}
scaleway_key          SCW             [A-Z0-9]{{17}}(?!{_A})
shippo_token          shippo_         (?:live|test)_[a-f0-9]{{40}}
snyk_token            snyk_           (?:uat|sat)\\.[a-z0-9]{{8}}\\.[A-Za-z0-9_.-]{{60,}}
sonar_token           sqp_            [a-z0-9]{{40}}
sonar_token           squ_            [a-z0-9]{{40}}
sonar_token           sqa_            [a-z0-9]{{40}}
square_token          sq0atp-         {_W}{{22}}
square_token          sq0csp-         {_W}{{43}}
square_token          EAAA            {_W}{{60}}(?!{_W})
stytch_secret         secret-live-    {_W}{{30,}}
stytch_secret         secret-test-    {_W}{{30,}}
supabase_key          sb_secret_      {_W}{{22,}}
tailscale_key         tskey-          (?:auth|api|client|scim|webhook)-{_W}{{20,}}
tencent_key           AKID            {_A}{{32}}(?!{_A})
together_key          tgp_v1_         {_W}{{40,}}
trello_token          ATTA            [a-f0-9]{{60,}}[A-Z0-9]{{0,10}}
twitch_token          oauth:          [a-z0-9]{{30}}(?!{_A})
twitter_token         AAAAAAAAAAAAAAAAAAAAA (?=[A-Za-z0-9%]{{0,80}}[0-9])[A-Za-z0-9%]{{50,}}(?![A-Za-z0-9+/])
typeform_token        tfp_            [A-Za-z0-9_.=-]{{50,}}
unkey_key             unkey_          {_A}{{20,}}
vercel_token          vcp_            {_A}{{24,}}
vercel_token          vck_            {_A}{{24,}}
voyage_key            pa-             (?=[A-Za-z_-]{{0,40}}[0-9]){_W}{{43}}(?!{_W})
wandb_key             wandb_v1_       {_W}{{40,}}
workos_key            sk_test_a2V5    {_A}{{40,}}
xprv_key              xprv            [1-9A-HJ-NP-Za-km-z]{{100,112}}(?!{_A})
yandex_key            AQVN            {_W}{{35,38}}(?!{_W})
yandex_key            YCA             {_W}{{36}}(?!{_W})
teams_webhook         webhookb2/      {_UUID}@{_UUID}/IncomingWebhook/[a-f0-9]{{32}}/{_UUID}
"""


def _table_rows() -> list[tuple[str, str, str]]:
    """Return kind, mark and rest of every line."""
    lines = (line.split(None, 2) for line in _TABLE.strip().splitlines())
    return [(kind, mark, rest) for kind, mark, rest in lines]


def not_within_word(prefix: bytes) -> bytes:
    """Return the condition that no word runs into the prefix. Escapes of a raw line and colours may end in a letter."""
    return rb"(?:(?<![A-Za-z0-9_-]%b)|(?<=\\[nrt]%b)|(?<=[0-9;\[][mK]%b))" % (prefix, prefix, prefix)


#: Kind, mark and pattern.
_Rule = tuple[str, bytes, re.Pattern[bytes]]


def _rules() -> Iterator[_Rule]:
    """Yield the rules of the table. A mark with a condition of its own may be anywhere."""
    for kind, mark, rest in _table_rows():
        head = re.escape(mark.encode())
        alone = b"" if rest.startswith("(?<=") else not_within_word(head)
        yield kind, mark.encode(), lazy_pattern(head + alone + rest.encode())


#: Families with so many other signs in them that there may be no long run of letters, digits, `_` and `-` in them.
_BROKEN_KINDS = {
    "asana_token", "aws_bedrock_key", "aws_session_token", "elastic_key", "intercom_token", "linkedin_token", "paypal_token",
}  # fmt: skip
#: Families that have such a run, which does not begin with the mark.
_INSIDE_KINDS = {
    "airtable_token",
    "azure_devops_token",
    "fcm_key",
    "mailchimp_key",
    "maxmind_key",
    "salesforce_token",
    "snyk_token",
}
#: Families whose mark is at the end: how far back they begin.
_BEFORE = {"mailchimp_key": 32, "azure_devops_token": 76, "maxmind_key": 36}
_HEAD = 3
_ONE_RUN = re.compile(rb"[A-Za-z0-9_-]{%d,}" % _HEAD)


#: What follows marks that are frequent in ordinary text.
_THEN = {
    b"pat": rb"[A-Za-z0-9]{14}\.",
    b"pat.": rb"[A-Za-z0-9]{22}",
    b"-us": rb"[0-9]",
    b"00D": rb"[A-Za-z0-9]{12,15}!",
    b"1/1": rb"[0-9]{12}",
    b"2/1": rb"[0-9]{12}",
    b"0.": rb"[0-9a-f]{8}-",
    b"dp.": rb"[a-z]{2,5}\.",
    b"sl.": rb"[A-Za-z0-9_.-]{20}",
}


def _sorted_rules() -> tuple[list[Search], list[Search], dict[bytes, list[_Rule]]]:
    broken: list[Search] = []
    inside: list[Search] = []
    by_head: dict[bytes, list[_Rule]] = {}
    for rule in _rules():
        search = re.escape(rule[1]) + _THEN.get(rule[1], b""), partial(_matches, rule)
        if rule[0] in _BROKEN_KINDS:
            broken.append(search)
        elif rule[0] in _INSIDE_KINDS or not _ONE_RUN.fullmatch(rule[1]):
            inside.append(search)
        else:
            by_head.setdefault(rule[1][:_HEAD], []).append(rule)
    return broken, inside, by_head


def _matches(rule: _Rule, data: bytes) -> list[Span]:
    kind, _, pattern = rule
    before = _BEFORE.get(kind, 0)
    return [(kind, match.start() - before, match.end()) for match in pattern.finditer(data)]


#: Families with other signs in their tokens, families with a run of letters and digits inside, and all others.
BROKEN_FAMILIES, INSIDE_FAMILIES, _RULES_BY_HEAD = _sorted_rules()
_RUN_MARKS = sorted({rule[1] for rules in _RULES_BY_HEAD.values() for rule in rules})
_SHORTEST_TOKEN = 19  # bytes of a run of 20, perhaps without its first
#: What data must contain, in RE2's syntax, before `run_tokens` is worth calling: a mark where a word begins, and a run.
RUN_CONDITION = rb"(?:^|[^A-Za-z0-9_-]|\\[nrt]|[0-9;\[][mK])(?:%b)" % b"|".join(
    re.escape(mark) + rb"[A-Za-z0-9_-]{%d}" % max(0, _SHORTEST_TOKEN - len(mark)) for mark in _RUN_MARKS
)


def run_tokens(data: bytes, starts: Iterable[int]) -> Iterator[Span]:
    """Yield the tokens that begin where a run of letters, digits, `_` and `-` begins, or after an escape or colour there."""
    for start in starts:
        for at in (start, start + 1):
            for kind, _, rule in _RULES_BY_HEAD.get(data[at : at + _HEAD], ()):
                if match := rule.match(data, at):
                    yield kind, at, match.end()
