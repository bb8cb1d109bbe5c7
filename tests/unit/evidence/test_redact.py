"""Secrets are taken out, and what only looks like one stays."""

from __future__ import annotations

import time

import pytest

from latencydoctor.evidence.redact import blank_prompts, plain, redact

SECRET = "hunter2-Zx9_longer"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}",
        f"'Authorization': 'Bearer {SECRET}'",
        f'{{"password": "{SECRET}"}}',
        f"password={SECRET} user=ann",
        f"db_passwd: '{SECRET}'",
        f"REDIS_PASSWORD={SECRET}",
        f"api_key={SECRET}&x=1",
        f"X-Api-Key: {SECRET}",
        f"access-token = {SECRET}",
        f"client_secret:{SECRET}",
        f"Cookie: {SECRET}",
        f"Cookie: theme=dark; session={SECRET}; lang=de",
        f'"set-cookie": "a=1; id={SECRET}; HttpOnly"',
        f"non-default args: {{'api_key': ['{SECRET}', 'more-{SECRET}'], 'model': 'm'}}",
        f"args: Namespace(api_key=['{SECRET}'], hf_token='{SECRET}', max_num_seqs=256)",
        f"ServerArgs(model_path='m', api_key='{SECRET}', admin_api_key=None)",
        f'{{\\"password\\": \\"{SECRET}\\", \\"user\\": 1}}',
        f'{{"log":"auth {{\\"api_key\\":\\"{SECRET}\\"}}\\n"}}',
        f"vllm serve m --api-key {SECRET} --port 8000",
        f"huggingface-cli login --token {SECRET}",
        f"GET https://s3.host/m.bin?X-Amz-Signature={SECRET}&X-Amz-Date=1 HTTP/1.1",
        f"POST https://blob.host/m?sv=1&sig={SECRET} failed",
        f"AccountKey={SECRET};EndpointSuffix=core",
        f'"password": "{SECRET}',
        f"redis://:{SECRET}@cache:6379/0",
        f"https://ann:{SECRET}@host/path",
        f"https://{SECRET}@host/path",
        f"sent bearer {SECRET} along",
        # Headers as programs print them.
        f"[('x-api-key', '{SECRET}'), ('accept', '*/*')]",
        f"[(b'authorization', b'Bearer {SECRET}'), (b'x-api-key', b'{SECRET}')]",
        f'[["X-Api-Key", "{SECRET}"]]',
        f"map[X-Api-Key:[{SECRET}] Accept:[*/*]]",
        f'Authorization: Digest username="ann", realm="r", nonce="n", response="{SECRET}"',
        # What an environment looks like in a dump of a container.
        f'{{"name":"API_KEY","value":"{SECRET}"}}',
        f"- name: DB_PASSWORD\n  value: {SECRET}",
        f'{{"Key": "HF_TOKEN", "Value": "{SECRET}"}}',
        # An escaped quote is no end.
        f'{{"password":"ab\\"{SECRET}"}}',
        f"password='ab\\'{SECRET}'",
        # In addresses and forms.
        f"redirect=https%3A%2F%2Fh%2F%3Faccess_token%3D{SECRET}%26x%3D1",
        f"password%3D{SECRET}%26user%3Dann",
        f"Authorization%3A%20Bearer%20{SECRET}",
        f"postgres://ann:ab/{SECRET}@host/db",
        # Of tools and stores.
        f"requirepass {SECRET}",
        f'"AUTH" "{SECRET}"',
        f'1700000000.1 [0 127.0.0.1:1] "AUTH" "default" "{SECRET}"',
        f"redis-cli -a {SECRET} ping",
        f"curl -u ann:{SECRET} https://host/",
        f'{{"auths":{{"registry":{{"auth":"{SECRET}"}}}}}}',
        f"passwords: ['{SECRET}', 'more-{SECRET}']",
        f"{{'password': {{'value': '{SECRET}'}}}}",
        f"secret_key_base: {SECRET}",
        f"<password>{SECRET}</password>",
        f"private_key_id: {SECRET}",
    ],
)
def test_named_secrets_are_taken_out(text: str) -> None:
    assert SECRET not in redact(text)
    assert "[redacted]" in redact(text)


@pytest.mark.parametrize(
    "secret",
    [
        "AKIA" + "ABCDEFGH12345678",
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2" * 9,
        "sk-" + "proj_a1B2" * 4,
        "hf_" + "a1B2" * 8,
        "xoxb-" + "1234567890-abc",
        "glpat-" + "a1B2" * 6,
        "nvapi-" + "a1B2" * 8,
        "sk_live_" + "a1B2" * 6,
        "AIza" + "Sy_-1" * 7,
        "ya29." + "a0-B_" * 6,
        "npm_" + "a1B2" * 9,
        "dckr_pat_" + "a1B-" * 6,
        "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0" + ".c2lnbmF0dXJl",
        "-----BEGIN RSA " + "PRIVATE KEY-----MIIE",
        "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\nb+/c\n-----END RSA PRIVATE KEY-----",
        "xapp-" + "1-A012345-123456-abcdef",
        "SG." + "a1B2-_" * 4 + "." + "a1B2-_" * 7,
        "gsk_" + "a1B2" * 12,
        "r8_" + "a1B2" * 9,
        "pypi-" + "AgEIcHlwaS5vcmcC" * 2,
        "hvs." + "CAESIa1B2" * 4,
    ],
)
def test_secrets_are_known_by_their_shape(secret: str) -> None:
    assert redact(f"it said {secret}") == "it said [redacted]"


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=512 num_tokens: 12",
        "token: 42",
        "http://127.0.0.1:8000/v2/models/faq-encoder",
        "exceeds maximum queue size",
        "key=abc secretary: yes",
        "#token: 1234567, token usage: 0.35, new_token=12.5",
        "--max-num-batched-tokens 8192 --tokenizer mistral --token 42",
        "design=1 signal: yes insignificant=2",
        "Prefill batch. #new-seq: 1, #new-token: 8192, #cached-token: 0",
        "batch_size=8 at 12:30:05",
        "author: ann, auth: ok, authors=3",
        '{"name": "queue", "value": 12}',
        "name: HTTP_PORT value: 8080",
        "-----END of the list-----",
        "passwords do not expire; tokens: 512, secrets are mounted",
        "('content-type', 'application/json')",
        "unable to authenticate: AUTH failed",
        "GET http://host:80/a/b@c HTTP/1.1",
        "sg.model.layers.0 r8_quantised",
        "curl -u https://host",
        'parameters { key: "eos_token" value: { string_value: "2" } }',
        'parameters { key: "TF_SIGNATURE_DEF" value: { string_value: "serving_default" } }',
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_the_name_of_the_secret_is_kept() -> None:
    assert redact("password=abc next=1") == "password=[redacted] next=1"


def test_addresses_of_people_are_taken_out_on_demand() -> None:
    assert redact("from ann.b+c@example.co.uk to x") == "from ann.b+c@example.co.uk to x"
    assert redact("from ann.b+c@example.co.uk to x", emails=True) == "from [redacted] to x"


@pytest.mark.parametrize(
    "text",
    [
        "Received request cmpl-1: prompt: 'my WORDS, \\'quoted\\' and all', params: SamplingParams(n=1)",
        'Received request cmpl-1: prompt: "my WORDS don\'t end", params: SamplingParams(n=1)',
        "Received request cmpl-1: prompt: 'my WORDS without an end",
        "Receive: obj=GenerateReqInput(text='my WORDS', input_ids=None)",
        "Receive: obj=GenerateReqInput(text=['my WORDS', 'n'], sampling_params={'n': 1})",
        '{"event": "slow_question", "question": "my WORDS", "took_ms": 700}',
        '{"messages": [{"role": "user", "content": "my WORDS"}], "n": 1}',
        '{"log":"{\\"inputs\\":\\"my WORDS\\",\\"parameters\\":{}}\\n"}',
    ],
)
def test_prompts_are_blanked(text: str) -> None:
    blanked = blank_prompts(text)
    assert "WORDS" not in blanked
    assert "[redacted]" in blanked


def test_prompts_as_token_ids_are_blanked_and_the_rest_stays() -> None:
    text = "Received request 1: prompt: 'a', params: SamplingParams(n=1), prompt_token_ids: [1, 22, 333], lora: None"
    expected = (
        "Received request 1: prompt: [redacted], params: SamplingParams(n=1), "
        "prompt_token_ids: [[redacted]], lora: None"
    )
    assert blank_prompts(text) == expected
    assert blank_prompts("E1130 a.cc:1] Request timeout expired") == "E1130 a.cc:1] Request timeout expired"


def test_hostile_lines_are_quick() -> None:
    lines = [
        *("curl " * 50_000, '"auth" "' * 30_000, "-----BEGIN PRIVATE KEY-----" * 9_000, "digest a=b," * 25_000),
        *("<password>" * 25_000, 'password="\\' * 25_000, "password={" * 25_000, "xx://a:b" * 30_000),
        *("name:api_key " * 20_000, '"password",' * 25_000, "secret" + "_key_base" * 25_000),
    ]
    lines += ["a-" * 100_000, "password" * 30_000, "://" * 80_000, "eyJ" * 80_000, "bearer " * 30_000, "a" * 250_000]
    started_s = time.process_time()
    for line in lines:
        redact(line)
    assert time.process_time() - started_s < 15


def test_plain_text_is_one_short_line_without_control_bytes() -> None:
    assert plain("a\x1b[31mb\n\tc") == "a [31mb c"
    assert plain("x" * 500, 20) == "x" * 19 + "…"
    assert plain(f"failed: password={SECRET}") == "failed: password=[redacted]"
