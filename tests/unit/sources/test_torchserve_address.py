"""TorchServe's token: from its own key file, from a bare one, from the environment; never in a message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencydoctor.errors import SourceError
from latencydoctor.model.configuration import Credentials, Tenant, TorchServeSource
from latencydoctor.sources.torchserve_address import management_key, torchserve_address

KEY = "aadJv_R6"
KEYS = {"management": {"key": KEY, "expiration time": "2026-11-30T11:41:31Z"}, "API": {"key": "xryL"}}
URL = "http://torch:8081"


def key_file(folder: Path, text: str) -> str:
    path = folder / "key_file.json"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("text", [json.dumps(KEYS), KEY, f"{KEY}\n"])
def test_the_token_comes_from_torchserve_s_file_or_a_bare_one(tmp_path: Path, text: str) -> None:
    source = TorchServeSource(URL, Credentials(bearer_file=key_file(tmp_path, text)), tenant=Tenant("X-Team", "TEAM"))
    assert dict(torchserve_address(source, {"TEAM": "a"}).headers) == {
        "Authorization": f"Bearer {KEY}",
        "X-Team": "a",
    }


def test_the_token_comes_from_the_environment() -> None:
    source = TorchServeSource(URL, Credentials(bearer_env="TOKEN"))
    assert torchserve_address(source, {"TOKEN": KEY}).headers == (("Authorization", f"Bearer {KEY}"),)


def test_without_a_token_none_is_sent() -> None:
    assert torchserve_address(TorchServeSource(URL), {}).headers == ()


@pytest.mark.parametrize(
    "told", [{}, [], 3, {"management": KEY}, {"management": {"key": 3}}, {"management": {"key": "a\nb"}}]
)
def test_a_file_without_a_management_key_has_none(tmp_path: Path, told: object) -> None:
    assert management_key(key_file(tmp_path, json.dumps(told))) == ""


def test_what_cannot_be_used_is_said_without_showing_it(tmp_path: Path) -> None:
    spoilt = key_file(tmp_path, json.dumps({"management": {"secret": KEY}}, indent=1))
    for credentials in (
        Credentials(bearer_file=spoilt),
        Credentials(bearer_file="/nowhere"),
        Credentials("", "", "", "T"),
    ):
        with pytest.raises(SourceError) as caught:
            torchserve_address(TorchServeSource(URL, credentials), {})
        assert KEY not in str(caught.value) + caught.value.hint
        assert "Prometheus" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize("url", ["torch:8081", "", "http://", "http://torch:8081?token=x", "http://torch:port"])
def test_a_bad_address_is_called_by_its_name(url: str) -> None:
    with pytest.raises(SourceError, match="TorchServe's management URL") as caught:
        torchserve_address(TorchServeSource(url), {})
    assert "8081" in caught.value.hint
