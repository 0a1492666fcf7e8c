"""What is said in pyproject.toml about frameworks is what the adapters check, and any other version is refused."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.adapters import mcp, openai_agents, versions
from surefoot.adapters.clients.wrapper import TABLES

ROOT = Path(__file__).resolve().parent.parent.parent
RANGES = {
    openai_agents.EXTRA: openai_agents.PACKAGES,
    mcp.EXTRA: mcp.PACKAGES,
    **{table.extra: {table.package: table.tested} for table in TABLES.values()},
}


@pytest.mark.parametrize("extra", RANGES)
def test_an_extra_installs_what_its_adapter_takes(extra):
    """Else `pip install 'surefoot[…]'` gives what is then refused."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][extra]

    found = [re.fullmatch(r"([\w-]+)>=([\d.]+),<([\d.]+)", each) for each in declared]
    assert {each[1]: (each[2], each[3]) for each in found if each} == RANGES[extra]


@pytest.mark.parametrize("extra", RANGES)
def test_the_pinned_versions_of_the_suites_are_in_the_range(extra):
    pins = "\n".join(each.read_text() for each in (ROOT / "tests" / "suites").glob("*/requirements.txt"))
    for package, (low, high) in RANGES[extra].items():
        pinned = re.findall(rf"^{package}==([\d.]+)$", pins, re.MULTILINE)
        assert pinned
        assert all(versions.numbers(low) <= versions.numbers(each) < versions.numbers(high) for each in pinned)


@pytest.mark.parametrize(
    ("version", "why"),
    [
        (None, "needs shop, which is not installed"),
        ("1.9.9", "from 2.0 on and below 3; 1.9.9 is installed, and nothing was wrapped"),
        ("3.0", "below 3; 3.0"),
        ("3rc1", "below 3; 3rc1"),
    ],
)
def test_another_version_is_refused_with_the_range_and_the_command(monkeypatch, version, why):
    monkeypatch.setattr(versions, "installed", lambda _: version)
    monkeypatch.delenv(versions.UNTESTED, raising=False)

    with pytest.raises(sf.UsageError, match=rf"{re.escape(why)}.*pip install 'surefoot\[store\]'"):
        versions.require("store", {"shop": ("2.0", "3")})


@pytest.mark.parametrize("version", ["2.0", "2.0.0", "2.99.1", "2.3rc1"])
def test_a_version_in_the_range_is_taken(monkeypatch, version):
    monkeypatch.setattr(versions, "installed", lambda _: version)
    versions.require("store", {"shop": ("2.0", "3")})


def test_another_version_may_be_tried_on_purpose_and_a_missing_package_not(monkeypatch, caplog):
    monkeypatch.setenv(versions.UNTESTED, "1")
    monkeypatch.setattr(versions, "installed", lambda _: "4.1")
    versions.require("store", {"shop": ("2.0", "3")})
    assert "shop 4.1 was not tested" in caplog.text

    monkeypatch.setattr(versions, "installed", lambda _: None)
    with pytest.raises(sf.UsageError, match="not installed"):
        versions.require("store", {"shop": ("2.0", "3")})


def test_a_name_that_went_away_within_the_range_is_refused(monkeypatch):
    """Adapters lean on private names: never half-wrapped."""
    monkeypatch.setattr(versions, "installed", lambda _: "2.5")
    versions.require_names("store", {"shop": ("2.0", "3")}, [])
    with pytest.raises(sf.UsageError, match=r"needs shop\.buy, which shop 2\.5 no longer has"):
        versions.require_names("store", {"shop": ("2.0", "3")}, ["shop.buy"])
