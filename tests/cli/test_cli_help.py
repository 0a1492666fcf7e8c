"""The command itself: help is quick, mistakes are named, JSON is given wherever it was asked for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from surefoot import errors
from surefoot.cli import main, run, settle
from surefoot.cli.runs import group

VERBS = {
    "accept",
    "adopt",
    "answer",
    "approve",
    "backup",
    "console",
    "copy",
    "crashtest",
    "demo",
    "deny",
    "doctor",
    "export",
    "import",
    "inbox",
    "inspect",
    "langgraph",
    "lint",
    "mcp",
    "preflight",
    "prune",
    "repair",
    "restore",
    "run",
    "runs",
    "send-event",
    "match",
    "settle",
    "verify",
    "worker",
}


def modules_after(statement):
    """What a fresh interpreter has loaded after running a statement."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys; print('\\n'.join(sys.modules), file=sys.stderr)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(ended.stderr.splitlines())


def test_help_loads_nothing_slow():
    """People ask for help often, and shells ask for completion all the time."""
    help_ = modules_after("from surefoot.cli.main import main; main(['--help']); main(['runs', '--help'])")
    package = modules_after("import surefoot")

    added = help_ - package
    slow = ("rich", "asyncio", "apsw", "surefoot.engine", "surefoot.store", "surefoot.cli.run", "surefoot.cli.demo")
    assert [] == sorted(name for name in added if f"{name}.".startswith(tuple(f"{one}." for one in slow)))
    assert not {"rich", "asyncio", "apsw"} & help_


NOT_TO_LOOK = (
    "asyncio", "rich", "json", "difflib", "surefoot.face", "surefoot.engine.declare", "surefoot.engine.session",
    "surefoot.engine.verbs", "surefoot.engine.worker", "surefoot.engine.workflow", "surefoot.world", "surefoot.view.facts",
    "surefoot.view.page",
)  # fmt: skip


def test_the_list_of_runs_loads_nothing_that_drives_runs(runs):
    """People look at it all the time. What it loads is what it costs: the engine takes longer to load than the list."""
    loaded = modules_after("from surefoot.cli.main import main; assert main(['runs']) == 0")

    assert "surefoot.store.sqlite.store" in loaded
    assert [] == sorted(each for each in loaded if f"{each}.".startswith(tuple(f"{one}." for one in NOT_TO_LOOK)))


def test_help_names_every_verb(cli):
    ended = cli("--help")

    assert (ended.code, ended.err) == (0, "")
    verbs = ended.out.split("Verbs:\n")[1].split("\n\n")[0]
    assert VERBS == {line.split()[0] for line in verbs.splitlines()}
    assert cli().out == ended.out


def test_help_names_the_exit_code_of_every_error(cli):
    """Scripts have to tell a wrong command from a run that needs a person."""
    codes = cli("--help").out.split("Exit codes:\n")[1]

    told = {line.split()[0] for line in codes.splitlines() if line[2:3].isdigit()}
    assert told == {"0", *map(str, exit_codes(errors.SurefootError)), "130,"}
    assert "3         A person is needed" in codes
    assert "Exit codes" not in cli("runs", "--help").out


def exit_codes(cls):
    return {cls.exit_code}.union(*map(exit_codes, cls.__subclasses__()))


@pytest.mark.parametrize("table", [main.VERBS, group.VERBS], ids=["surefoot", "runs"])
def test_every_verb_of_the_tables_exists_and_has_help(cli, table):
    """Verbs are loaded by name when used; a typo there would be found by a user."""
    prefix = () if table is main.VERBS else ("runs",)
    for verb in table:
        ended = cli(*prefix, verb, "--help")

        assert ended.code == 0
        assert ended.out.startswith("Usage: surefoot ")


def test_the_version_is_the_packages(cli):
    import surefoot

    assert cli("--version").out == f"surefoot {surefoot.__version__}\n"


@pytest.mark.parametrize(
    "words", [("nonsense",), ("runs", "nonsense"), ("run",), ("runs", "list", "--status", "fine"), ("settle", "a")]
)
def test_mistakes_on_the_command_line_end_with_2_and_point_to_help(cli, words):
    ended = cli(*words)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("UsageError: ")
    assert "--help" in ended.err


def test_a_program_that_asked_for_json_gets_json_even_for_a_mistake(cli):
    ended = cli("nonsense", "--json")

    assert (ended.code, ended.json["error"]["type"], ended.json["error"]["exit_code"]) == (2, "UsageError", 2)


def test_json_may_stand_before_or_after_the_verb(cli, runs):
    after = cli("runs", "show", "done-1", "--json").json
    assert after == cli("--json", "runs", "show", "done-1").json == cli("runs", "--json", "show", "done-1").json
    assert json.dumps(after)


def test_operators_can_name_themselves_wherever_they_act():
    """Every action of a person is an entry with who and why."""
    from surefoot.cli.runs import cancel

    for command in (settle.settle, cancel.cancel):
        assert {"by", "note"} <= {option.name for option in command.params}
    assert "by" not in {option.name for option in run.run.params}


def test_the_package_can_be_run_as_a_module(shell):
    assert shell("--version").out.startswith("surefoot ")
