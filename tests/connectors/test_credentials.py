from __future__ import annotations

import pytest

from connectors.credentials import credentials, is_credential


@pytest.mark.parametrize(
    "name", ["key", "secret", "aws_secret_access_key", "token", "sas_token", "password", "PASSPHRASE", "cred"]
)
def test_an_option_with_the_name_of_a_secret_is_a_credential(name: str) -> None:
    assert is_credential(name)


@pytest.mark.parametrize("name", ["anon", "endpoint_url", "region_name", "client_kwargs", "use_ssl"])
def test_an_option_that_says_which_store_it_is_is_none(name: str) -> None:
    assert not is_credential(name)


def test_credentials_are_found_at_any_depth() -> None:
    options = {"key": "k", "client_kwargs": {"region": "eu", "token": "t", "more": {"password": {"x": 1}}}}
    assert list(credentials(options)) == [
        ("key",),
        ("client_kwargs", "token"),
        ("client_kwargs", "more", "password"),
    ]
    assert list(credentials({"anon": True, "client_kwargs": {}})) == []
