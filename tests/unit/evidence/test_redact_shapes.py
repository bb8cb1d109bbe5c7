"""Secrets as people and programs write them out are taken out, and each has look-alikes that stay."""

from __future__ import annotations

import time

import pytest

from latencydoctor.evidence.redact import redact

SECRET = "hunter2-Zx9!longer"
BASE64 = "AGFubgBodW50ZXIyWng5"


def in_prose() -> list[str]:
    return [
        "login as ann, password is hunter2X!",
        "the token was abc123def456ghi789, retrying",
        f'Password: "{SECRET} and more"',
        f"Password: '{SECRET} and more'",
        f"the api key is {SECRET}",
        f"secret was {SECRET}.",
        f"PASSWORD IS {SECRET}",
        f"the password for ann is {SECRET}",
        f"password has been set to {SECRET}",
        f"access token is: {SECRET}",
        f"trying password {SECRET}",
        'password is "correct horse battery staple"',
        "the admin password is 73519284",
        f"ALTER USER ann WITH PASSWORD '{SECRET}'",
        f"CREATE USER 'ann'@'%' IDENTIFIED BY '{SECRET}'",
    ]


def on_command_lines() -> list[str]:
    return [
        f"mysql -uroot -p{SECRET} db",
        f"mysqldump -h db -u root -p'{SECRET}' models",
        f"+ mariadb --port 3306 -p{SECRET}",
        f"curl -s -u ann:{SECRET} https://host/",
        f"curl -uann:{SECRET} https://host/",
        f"curl --proxy-user ann:{SECRET} https://host/",
        f"psql postgres://ann:{SECRET}@db/x",
        f"redis-cli -h cache -a {SECRET} ping",
        f"redis-cli --pass {SECRET} ping",
        f"REDISCLI_AUTH={SECRET} redis-cli ping",
        f"tool --password={SECRET}",
        f"tool --password {SECRET} --verbose",
        "tool --password 73519284 --verbose",
        "tool --api-key 735192847351",
        f"java -jar a.jar -password {SECRET}",
        f"tool --token {SECRET}",
        "tool --token 735192847351",
        f"['vllm', 'serve', '--api-key', '{SECRET}']",
        f"sshpass -p {SECRET} ssh host",
        f"sshpass -p'{SECRET}' ssh host",
        f"docker login -u ann -p {SECRET} registry",
        f"mongosh -u ann -p {SECRET} db",
        f"ldapsearch -D cn=ann -w {SECRET} -b dc=x",
        f"openssl rsa -in k.pem -passin pass:{SECRET}",
        f"keytool -list -storepass {SECRET}",
        f"aws configure set aws_secret_access_key {SECRET}",
        f"echo {SECRET} | docker login -u ann --password-stdin",
    ]


def of_protocols() -> list[str]:
    return [
        f"127.0.0.1:6379> AUTH {SECRET}",
        f"AUTH default {SECRET}",
        f"AUTH ann {SECRET}",
        f"AUTH {SECRET}",
        f"HELLO 3 AUTH default {SECRET} SETNAME x",
        f"redis command failed: AUTH ann {SECRET}",
        f"*2\\r\\n$4\\r\\nAUTH\\r\\n$18\\r\\n{SECRET}\\r\\n",
        f"ACL SETUSER ann on >{SECRET} ~* +@all",
        f'"CONFIG" "SET" "requirepass" "{SECRET}"',
        f"C: AUTH PLAIN {BASE64}",
        f"smtp: AUTH LOGIN {BASE64}=",
        f"AUTH XOAUTH2 {BASE64}",
        f"a1 AUTHENTICATE PLAIN {BASE64}",
        f"a1 LOGIN ann {SECRET}",
        f"C: PASS {SECRET}",
        f"SCRAM client-final c=biws,r=rOprNGfwEbe,p={BASE64}dHzbZapWIk4jUhN=",
        f"rolpassword SCRAM-SHA-256$4096:{BASE64}==${BASE64}=:{BASE64}=",
        f"sasl response: n,,n=ann,r=abc; c=biws,r=rOprNGfwEbe,p={BASE64}",
    ]


def in_digits() -> list[str]:
    return [
        "api_key=735192847351",
        "password: 73519284",
        "auth_token=735192847351",
        "access-token: 73519284",
        '"refresh_token": 735192847351',
        "token=735192847351",
        "bot_token: 7351928473",
        '{"secret": 735192}',
        "client_secret=735192847351",
    ]


def escaped() -> list[str]:
    return [
        f"&quot;password&quot;:&quot;{SECRET}&quot;",
        f"&quot;api_key&quot;: &quot;{SECRET}&quot;, &quot;model&quot;: 1",
        f"&#34;token&#34;:&#34;{SECRET}&#34;",
        f"&#39;password&#39;: &#39;{SECRET}&#39;",
        f"\\u0022password\\u0022:\\u0022{SECRET}\\u0022",
        f"\\u0022token\\u0022: \\u0022{SECRET}\\u0022",
        f'\\"password\\": \\"{SECRET}\\"',
        f'\\\\"password\\\\": \\\\"{SECRET}\\\\"',
        f'\\\\\\"password\\\\\\": \\\\\\"{SECRET}\\\\\\"',
        f'{{\\"password\\":\\"ab\\\\\\"{SECRET}\\"}}',
        f"%22password%22%3A%22{SECRET}%22",
        f"&lt;password&gt;{SECRET}&lt;/password&gt;",
    ]


def as_programs_print_them() -> list[str]:
    """Of two looks at sixty lines each, written without the rules in view: what they missed, and a few more."""
    return [
        f"discord https://discord.com/api/webhooks/123456789012345678/{BASE64}-_abcdef failed",
        f"https://api.telegram.org/bot123456789:AA{BASE64}/sendMessage",
        f"wandb login {BASE64}",
        "data: {tls.key: " + "LS0tLS1CRUdJTi" + f"BSU0EgUFJJVkFURSBLRVk{BASE64}}}",
        f"DB_PASS={SECRET}",
        f"smtp_pass: {SECRET}",
        f"config: {{user: svc, pass: {SECRET}, host: db}}",
        "twilio auth " + "SK" + "735192ab" * 4,
        f'"password" => "{SECRET}"',
        f"a=>1, password=>{SECRET}",
        f"mount.cifs -o username=svc,password={SECRET},vers=3.0 //nas/models",
        f"jdbc:sqlserver://db:1433;databaseName=x;user=sa;password={SECRET};encrypt=true",
        f"http://127.0.0.1:8888/lab?token={BASE64}",
        f"machine github.com login ann password {SECRET}",
        "ray start --redis-password=735192847351",
        f"The password for user svc is {SECRET}",
        "[Note] A temporary password is generated for root@localhost: hunter2<;lkQw2#Xd",
        f'invalid token "{SECRET}" for user',
        f"user svc logged in with token {SECRET}",
        f"API key: {SECRET}",
        f"api-key {SECRET} rejected",
        f"Access key ID: x Secret access key: {SECRET}",
        f"Ocp-Apim-Subscription-Key: {SECRET}",
        f"encryption_key: {SECRET}",
        f"SIGNING_KEY={SECRET}",
        f"docker run -e 'REDIS_PASSWORD=a, {SECRET}' img",
        f'"Env": ["PATH=/bin", "DB_PASSWORD=a;{SECRET}"]',
        f"kubectl create secret generic s --from-literal=hf={SECRET}",
        f"http -a ann:{SECRET} GET host/",
        f"mc alias set s3 http://minio:9000 minioadmin {SECRET}",
        "Atlassian token " + "ATATT3" + BASE64,
        "Databricks " + "dapi" + "735192ab" * 4,
        "digitalocean " + "dop_v1_" + "735192ab" * 8,
        "grafana " + "glsa_" + BASE64 + "_735192ab",
        "pinecone " + "pcsk_" + BASE64,
        "age key " + "AGE-SECRET-KEY-1" + "QQ735192",
        "-----BEGIN PGP " + f"PRIVATE KEY BLOCK-----\n{BASE64}\n-----END PGP PRIVATE KEY BLOCK-----",
        f"shadow: root:$6$saltsalt${BASE64}:19000:0",
        f"sqlalchemy.exc.OperationalError: postgresql+psycopg2://svc:{SECRET}@db:5432/x",
    ]


PARTS = (SECRET, "hunter2", BASE64, "735192", "abc123def456ghi789", "correct horse", "and more")


@pytest.mark.parametrize(
    "text", [*in_prose(), *on_command_lines(), *of_protocols(), *in_digits(), *escaped(), *as_programs_print_them()]
)
def test_secrets_are_taken_out(text: str) -> None:
    taken = redact(text)
    assert "[redacted]" in taken
    assert not [part for part in PARTS if part in taken], taken


@pytest.mark.parametrize(
    "text", [*in_prose(), *on_command_lines(), *of_protocols(), *in_digits(), *escaped(), *as_programs_print_them()]
)
def test_taking_them_out_twice_changes_nothing(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "text",
    [
        # Prose about secrets.
        "password is required",
        "Password is required for user ann",
        "token is expired",
        "the token was rejected: it expired 35s ago",
        "no password given",
        "password is base64-encoded",
        "passwords are hashed with bcrypt",
        "secret is mounted at /etc/secrets/db2",
        "the secret was not found in namespace prod2",
        "token is valid until 2026-11-30T10:00:00Z",
        "token is 2026-11-30T10:00:00Z old",
        "token was 15.3ms late",
        "the next token is 42",
        "stop token is 128009",
        "using password authentication for ann",
        "password authentication failed for user ann1",
        'MountVolume.SetUp failed for volume "v": secret "model-creds-7f9d" not found',
        "password: required",
        "token: expired",
        "api_key=None, hf_token=None",
        '{"password": null, "token": false}',
        "authorization: failed",
        "failed to identify by 'name'",
        # Command lines.
        "mysql -P 3306 -p -h db1",
        "mysql --protocol=tcp --port 3306",
        "mkdir -p /var/lib/mysql2/data",
        "mysql is up; ssh -p2222 host",
        "curl -s -o /dev/null -w %{http_code} https://host/",
        "curl --user-agent probe/1.2 http://host/",
        "docker run -p 8000:8000 nvcr.io/tritonserver:24.05",
        "docker login registry failed, see -p 8000:80",
        "redis-cli -h cache -p 6379 --latency",
        "tool --tokenizer-pool-size 4 --max-tokens 4096",
        "tool --secret-count 3 --token-limit 1000000",
        "tool --password-file /run/pw1 --verbose",
        "tool --password-stdin --verbose",
        "ldapsearch -x -b dc=x1",
        "echo 12 | tee a",
        # Protocols.
        "AUTH failed for client 10.0.0.7",
        "NOAUTH Authentication required.",
        "AUTH required",
        "ERR AUTH <password> called without any password configured",
        "250-AUTH PLAIN LOGIN CRAM-MD5 XOAUTH2",
        "250 AUTH LOGIN PLAIN SCRAM-SHA-256",
        "AUTH PLAIN failed: 535 5.7.8",
        "AUTH LOGIN authentication failed",
        "authentication method SCRAM-SHA-256 is not supported",
        "SCRAM authentication requires libpq version 10 or above",
        "LOGIN ok for ann",
        "PASS tests/unit/a2.py",
        "--- PASS: TestBatch2 (0.01s)",
        "r=0.93, p=0.0001",
        # Figures.
        "max_tokens=4096",
        "tokens: 512",
        "total_tokens: 735192847351",
        "new_token=735192",
        "token_port=8080 session_count=12",
        "secrets: 3, credentials=2, api_keys: 12",
        "token usage: 0.35, #token: 1234567",
        "prompt_token: 123456 completion_token: 77",
        # Escaped, but no secret.
        "&quot;max_tokens&quot;:512, &quot;model&quot;:&quot;m&quot;",
        "\\u0022tokens\\u0022:\\u0022512\\u0022",
        '\\"model\\": \\"llama\\"',
        # As programs print them.
        'failed to fetch token: pods "triton-0" not found',
        'error getting secret: secrets "hf" is forbidden',
        "Basic batching strategy in use",
        "basic authentication is required",
        "imagePullSecrets: [regcred]",
        "tls.crt: " + "LS0tLS1CRUdJTi" + "BDRVJUSUZJQ0FURS0tLS0tCk1JSUM=",
        "expected 12 arguments: pass 3, fail 0; pass: true",
        "forward pass: 12.3ms, backward_pass: 8ms",
        "PASS: tests/a1/b2.py",
        "Access denied for user 'svc'@'10.0.0.7' (using password: YES)",
        "WRONGPASS invalid username-password pair or user is disabled.",
        "Accepted publickey for ann from 10.0.0.1 port 22 ssh2",
        "GET http://10.0.0.7:8000/v2/models/resnet@3/infer 200",
        "signature of model resnet: serving_default",
        "token_type=bearer expires_in=3599",
        "password: (empty)",
        "password for user svc has expired",
        "the password is at least 8 characters",
        "invalid token at position 12, bad token: <unk>",
        "api key is not valid for region us-east-1",
        "private key: permission denied",
        "token t1 of batch b2; expected token: 15043",
        "cost $6 and $5 of $25",
        # Identities.
        "request 550e8400-e29b-41d4-a716-446655440000 took 30 ms",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "image sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "request_id=cmpl-7f9d2c41b0a94e5d9c1f req-9b1deb4d",
    ],
)
def test_look_alikes_stay(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "password is ",
            "password for a ",
            "password is a",
            "token=1",
            "password=&quot;",
            '\\"',
            "password\\u0022:\\u0022",
        ),
        *(
            "mysql -",
            "docker login ",
            "mongosh -",
            "curl -u a",
            "7z ",
            "zip ",
            "echo a|--password-stdin ",
            "smbclient -U a",
        ),
        *(
            "AUTH a ",
            "> AUTH a ",
            "AUTH\\r\\n$1\\r\\na",
            "c=a,r=",
            "setuser >",
            "> a1 LOGIN a ",
            "--a-password ",
            "&lt;",
        ),
    ],
)
def test_a_long_line_takes_time_by_its_length_only(piece: str) -> None:
    def took_s(characters: int) -> float:
        line = piece * (characters // len(piece))
        started_s = time.process_time()
        redact(line)
        return time.process_time() - started_s

    # Were it quadratic, five times the length would take twenty-five times as long.
    short_s = max(0.005, min(took_s(10_000) for _ in range(3)))
    assert min(took_s(50_000) for _ in range(2)) < 14 * short_s
