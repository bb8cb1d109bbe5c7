"""Which model of which TorchServe a target's name means."""

from __future__ import annotations

import pytest

from latencydoctor.cli import targets_wiring, torchserve_wiring
from latencydoctor.cli.torchserve_wiring import chosen
from latencydoctor.errors import UsageError
from latencydoctor.model.configuration import Configuration, Credentials, TorchServeModel, TorchServeSource
from latencydoctor.model.effects import unwatched

SERVER = TorchServeSource("http://ts.example:8081/", Credentials(bearer_file="key_file.json"))
CONFIGURED = TorchServeModel(SERVER, "tiny", (("1.0", "tiny-1.0.mar"),))


def test_the_configured_one_is_meant_by_its_kind_or_by_nothing() -> None:
    configuration = Configuration(torchserve_target=CONFIGURED)
    assert chosen(configuration, "") == CONFIGURED
    assert chosen(configuration, "torchserve") == CONFIGURED
    assert chosen(Configuration(), "") is None


def test_a_target_is_named_as_plans_name_it() -> None:
    named = "torchserve:http://ts.example:8081/models/tiny"
    assert chosen(Configuration(torchserve_target=CONFIGURED), named) == CONFIGURED
    # The token goes along to the server that it was written for, the archives only to their model.
    other = chosen(Configuration(torchserve_target=CONFIGURED), "torchserve:http://ts.example:8081/models/big")
    assert other == TorchServeModel(SERVER, "big")
    assert chosen(Configuration(torchserve=SERVER), named) == TorchServeModel(SERVER, "tiny")
    elsewhere = chosen(Configuration(torchserve_target=CONFIGURED), "torchserve:http://evil.example:8081/models/tiny")
    assert elsewhere == TorchServeModel(TorchServeSource("http://evil.example:8081"), "tiny")


def test_a_path_before_the_models_is_kept() -> None:
    found = chosen(Configuration(), "torchserve:https://proxy.example/ts/models/tiny")
    assert found == TorchServeModel(TorchServeSource("https://proxy.example/ts"), "tiny")


@pytest.mark.parametrize("named", ["/srv/stack", "stack", "triton:/srv/models@h:8001/tiny", "torchserve-state"])
def test_other_kinds_are_not_meant(named: str) -> None:
    assert chosen(Configuration(torchserve_target=CONFIGURED), named) is None


@pytest.mark.parametrize("named", ["torchserve", "torchserve:", "torchserve:http://h:8081", "torchserve:h/models/tiny"])
def test_a_name_that_names_no_model_is_an_error(named: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen(Configuration(), named)
    assert "torchserve:URL/models/MODEL" in (caught.value.hint or "")


def test_two_configured_targets_are_not_guessed_between() -> None:
    configuration = Configuration(torchserve_target=CONFIGURED, bundled_state="/srv/stack")
    with pytest.raises(UsageError, match="several targets"):
        targets_wiring.bound(configuration, "", lambda: 0.0, unwatched)


def test_each_model_has_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/home/x/state")
    plain = TorchServeModel(TorchServeSource("http://ts.example:8081"), "tiny")
    with_slash = TorchServeModel(TorchServeSource("http://ts.example:8081/"), "tiny")
    assert torchserve_wiring.journal(plain) == torchserve_wiring.journal(with_slash)
    assert torchserve_wiring.journal(plain) != torchserve_wiring.journal(TorchServeModel(plain.server, "big"))
    assert str(torchserve_wiring.journal(plain)).startswith("/home/x/state/latencydoctor/targets/")
