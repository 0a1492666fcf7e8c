"""`surefoot lint` as people and programs use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from surefoot.lint import runner, selection
from surefoot.lint.rules import ALL

ROOT = Path(__file__).resolve().parent.parent.parent
THREE = """import json
import requests

done = {}


def load_checkpoint(path):
    try:
        with open(path) as file:
            return json.load(file)
    except Exception:
        return {}


def save_checkpoint(path, state):
    with open(path, "w") as file:
        json.dump(state, file)


def run(orders, tracker):
    for order in orders:
        tracker.mark_done(order.id)
        requests.post("https://shop.test/orders", json=order.body)
"""
MENDED = """import json
import os
import requests


def load_checkpoint(path):
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def save_checkpoint(path, state):
    with open(path + ".new", "w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def run(orders, tracker):
    for order in orders:
        requests.post("https://shop.test/orders", json=order.body)
        tracker.mark_done(order.id)
"""
CLOCK = """import surefoot as sf
from {module} import {name} as z{more}

@sf.step
def fetch(day: str) -> str:
    return day

def stamp():
    return str(z{call}())

def label():
    return stamp()

@sf.workflow
def daily() -> str:
    return fetch(label())
"""


def write(text, name="app.py"):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_three_mistakes_are_shown_with_their_lines_and_cures_and_mended_code_is_quiet(lint):
    """The first minute of somebody who has never heard of us."""
    write(THREE)
    bad = lint()
    write(MENDED)
    good = lint()

    assert (bad.code, good.code) == (1, 0)
    for line in (
        "app.py:11:5: SF106 start-fresh:", "app.py:16:10: SF109 torn-write:", "app.py:22:9: SF101 done-before-effect:",
        "   11 |     except Exception:", "      |     ^^^^^^^^^^^^^^^^^", "  cure  FileNotFoundError: new.",
        "3 found in 1 file (2 errors, 1 warning). Nothing found is no proof: surefoot crashtest app:workflow",
    ):  # fmt: skip
        assert line in bad.out
    assert good.out.startswith("0 found in 1 file. Nothing found is no proof")


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)
def test_every_rule_explains_itself(lint, rule):
    """Whoever is told off wants to know why, and what to do."""
    said = lint("--explain", rule.code)

    assert said.code == 0
    for text in (rule.why, rule.cure, rule.quiet, rule.bad.splitlines()[0], rule.good.splitlines()[0]):
        assert text in said.out
    assert lint("--explain", rule.name).out == said.out


def test_all_rules_are_listed(lint):
    """One line each."""
    assert [line.split()[0] for line in lint("--rules").out.splitlines()] == [rule.code for rule in ALL]
    assert len(json.loads(lint("--rules", "--json").out)["rules"]) == 35


@pytest.mark.parametrize(
    ("module", "name", "call"), [("time", "time", ""), ("datetime", "datetime", ".now"), ("datetime", "date", ".today")]
)
def test_a_mistake_in_a_helper_under_an_alias_is_found_with_the_way_to_it(lint, module, name, call):
    """Most offences sit in helpers."""
    write(CLOCK.format(module=module, name=name, more="", call=call))

    said = lint("--json")

    assert said.codes == ["SF201"]
    assert said.json["findings"][0]["via"] == ["daily", "label", "stamp"]


def test_a_local_that_is_called_time_is_not_the_clock(lint):
    """A name alone means nothing."""
    write("import surefoot as sf\nimport time\n\n@sf.workflow\ndef job(time) -> float:\n    return time.time()\n")

    assert lint().code == 0


def test_the_shop_of_the_testing_page_is_found_at_the_desk_too(lint):
    """`crashtest` blames the same call, after killing it."""
    page = (ROOT / "docs" / "testing.md").read_text()
    bad, good = (part.partition("```")[0] for part in page.split("```python file=shop.py\n")[1:3])

    write(bad, "shop.py")
    said = lint("--json").json["findings"]
    assert [(one["code"], one["line"]) for one in said] == [("SF301", 9)]
    assert "open()" in said[0]["message"]
    write(good, "shop.py")
    assert lint().code == 0


# --- forms of output -------------------------------------------------------------------------------


def test_programs_get_one_object(lint):
    """The fields are a promise."""
    write(THREE, "src/deep/app.py")

    said = lint("--format", "json").json

    assert set(said) == {"version", "findings", "files", "unreadable"}
    assert set(said["findings"][0]) == {
        "code", "name", "severity", "path", "line", "column", "end_line", "message", "cure", "via", "fingerprint",
    }  # fmt: skip
    assert {one["path"] for one in said["findings"]} == {"src/deep/app.py"}
    assert lint("--json").out == lint("--format", "json").out


def test_github_gets_a_command_for_each_finding_in_one_line(lint):
    """A colon or a comma in a property would cut it off."""
    write(THREE, "a,b:c/app 100%.py")

    lines = lint("--format", "github").out.splitlines()

    assert len(lines) == 3
    assert lines[0].startswith(
        "::error file=a%2Cb%3Ac/app 100%25.py,line=11,col=5,endLine=12,title=SF106 start-fresh::an unreadable checkpoint"
    )
    assert lines[1].startswith("::warning ")


def test_code_scanners_get_sarif(lint):
    """An alert stays the same alert when its line moves, and is another one in another file."""
    write(THREE)
    before = json.loads(lint("--format", "sarif").out)
    write("\n\n" + THREE)
    after = json.loads(lint("--format", "sarif").out)

    assert before["version"] == "2.1.0"
    (run,) = before["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert {rule.code for rule in ALL} <= {one["id"] for one in rules}
    assert all(one["defaultConfiguration"]["level"] in ("error", "warning") for one in rules)
    assert all(one["help"]["text"] for one in rules if not one["id"].startswith("SF00"))
    for one in run["results"]:
        assert rules[one["ruleIndex"]]["id"] == one["ruleId"]
        region = one["locations"][0]["physicalLocation"]["region"]
        assert region["startLine"] <= region["endLine"]
        assert region["startColumn"] >= 1
    marks = [[one["partialFingerprints"] for one in log["runs"][0]["results"]] for log in (before, after)]
    assert marks[0] == marks[1]
    lines = [
        [one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in log["runs"][0]["results"]]
        for log in (before, after)
    ]
    assert lines[1] == [line + 2 for line in lines[0]]


def test_two_lines_that_read_the_same_have_marks_of_their_own(lint):
    """Else a scanner would close the one when the other is mended."""
    write("def a(t, x):\n    t.mark_done(x)\n    send_mail(x)\n\ndef b(t, x):\n    t.mark_done(x)\n    send_mail(x)\n")

    assert len({one["fingerprint"] for one in lint("--json").json["findings"]}) == 2


def test_the_answer_is_the_same_with_any_number_of_processes(lint, monkeypatch):
    """A report that changes from run to run is read once."""
    monkeypatch.setattr(runner, "_CHUNK", 4)
    for number in range(14):
        write(THREE, f"p{number % 7}/m{number}.py")
    chosen = selection.configured(Path.cwd())
    paths = selection.files(["."], chosen).paths

    alone, together = runner.look_at(paths, chosen, processes=1), runner.look_at(paths, chosen, processes=3)

    assert (alone.findings, alone.frames, alone.files) == (together.findings, together.frames, together.files)
    assert len(alone.findings) == 42


def test_statistics_count_by_rule(lint):
    """The first look at a large repository."""
    write(THREE, "a.py")
    write(THREE, "b.py")

    assert lint("--statistics").out.splitlines()[0].split() == ["2", "SF101", "done-before-effect"]


def test_a_place_is_counted_in_characters_and_lines_as_python_counts_them(lint):
    """An editor jumps there. A form feed ends no line, and a letter may be several bytes."""
    write("x = 1\n\x0c\ndef go(t, x):\n    'é'; t.mark_done(x)\n    send_mail(x)\n")

    (one,) = lint("--json").json["findings"]

    assert (one["line"], one["column"]) == (4, 10)


def test_there_is_no_colour_without_a_terminal(lint):
    """Logs are read by programs."""
    write("def \x1b[31m")

    assert "\x1b" not in lint().out


# --- ignores ---------------------------------------------------------------------------------------

SLEEP = "import time\nimport surefoot as sf\n\n@sf.workflow\ndef job() -> None:\n    time.sleep(1){}\n"


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("", ["SF205"]),
        ("  # surefoot: ignore[SF205] a pause for the demo", []),
        ("  # noqa: X1  # surefoot: ignore[SF205, SF201] a pause for the demo", ["SF002"]),
        ("  # surefoot: ignore[SF205]", ["SF001", "SF205"]),
        ("  # surefoot: ignore", ["SF001", "SF205"]),
        ("  # surefoot: ignore[SF999] because", ["SF001", "SF205"]),
        ("  # surefoot: ignore[SF201] never compared", ["SF002", "SF205"]),
        ('; x = "# surefoot: ignore[SF205] not a comment"', ["SF205"]),
    ],
)
def test_an_ignore_needs_a_code_a_reason_and_something_to_ignore(lint, comment, expected):
    """In a year somebody asks why."""
    write(SLEEP.format(comment))

    assert sorted(lint("--json").codes) == expected


def test_an_ignore_may_stand_on_the_first_line_of_the_statement(lint):
    """The finding may be in the middle of a long call."""
    write(
        "import time\nimport surefoot as sf\n\n@sf.workflow\ndef job() -> None:\n"
        "    print(  # surefoot: ignore[SF205] shown once\n        1,\n        time.sleep(\n            1\n        ),\n    )\n"
    )

    assert lint().code == 0


# --- configuration ---------------------------------------------------------------------------------


def test_the_configuration_chooses_rules_files_and_effects(lint):
    """Its folder is what paths are relative to, wherever the command is run."""
    write(THREE, "src/app.py")
    write(THREE, "vendor/app.py")
    write("def go(t, x):\n    t.mark_done(x)\n    x.frobnicate(1)\n", "src/own.py")
    write(
        '[tool.surefoot.lint]\nselect = ["SF1"]\nignore = ["SF109"]\nexclude = ["vendor/**"]\neffects = ["*.frobnicate"]\n'
        '[tool.surefoot.lint.per-file-ignores]\n"src/app.py" = ["SF106"]\n',
        "pyproject.toml",
    )

    said = lint("--json").json
    os.chdir("src")

    assert [(one["path"], one["code"]) for one in said["findings"]] == [
        ("src/app.py", "SF101"),
        ("src/own.py", "SF101"),
    ]
    assert lint("--json").json["findings"] == said["findings"]


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ('slect = ["SF1"]', "'select'"),
        ('select = ["SF602"]', "Did you mean SF"),
        ('ignore = ["start-frsh"]', "start-fresh"),
        ('select = "SF1"', "list of texts"),
        ('per-file-ignores = { "x" = ["SF9"] }', "'SF9'"),
    ],
)
def test_a_wrong_configuration_is_wrong_use_and_names_what_is_near(lint, table, named):
    """A rule that a spelling mistake left on, or off, is found too late."""
    write(f"[tool.surefoot.lint]\n{table}\n", "pyproject.toml")

    said = lint()

    assert said.code == 2
    assert named in said.err


def test_an_unknown_code_or_path_on_the_command_line_is_wrong_use(lint):
    """The nearest name is said."""
    assert "Did you mean SF" in lint("--select", "SF20x").err
    assert lint("--explain", "SF2").code == 2
    assert lint("nowhere.py").code == 2


def test_tests_and_demonstrations_are_judged_less(lint):
    """Mistakes there are often the point."""
    write(THREE, "tests/test_app.py")
    memory = "from langgraph.checkpoint.memory import MemorySaver\nsaver = MemorySaver()\n"
    write(memory, "examples/one.py")
    write(memory, "src/one.py")

    assert [one["path"] for one in lint("--json").json["findings"]] == ["src/one.py"]


def test_standard_input_is_read(lint, monkeypatch):
    """For editors."""
    import io

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(THREE.encode())))

    assert lint("-", "--json").codes == ["SF106", "SF109", "SF101"]


def test_only_changed_lines_are_judged_since_a_commit(lint):
    """An old repository is mended as it is touched."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    write(THREE)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    assert lint("--diff", "HEAD").code == 0

    write(THREE.replace("except Exception:", "except ValueError:"))
    write(SLEEP.format(""), "new.py")

    assert sorted(lint("--diff", "HEAD", "--json").codes) == ["SF106", "SF205"]
    assert lint("--diff", "nothing").code == 2


# --- files -----------------------------------------------------------------------------------------


def test_files_of_every_sort_are_looked_at_without_a_traceback(lint):
    """One file that cannot be read must not hide the others."""
    write("def f(:\n", "broken.py")
    write("", "empty.py")
    write("x = " + "(" * 5_000 + ")" * 5_000, "nested.py")
    write("x = " + " + ".join(["1"] * 20_000), "long.py")
    write("x = a" + ".b()" * 3_000 + "\nimport surefoot\n", "chain.py")
    Path("latin.py").write_bytes("# -*- coding: latin-1 -*-\nimport json\nx = 'é'\n".encode("latin-1"))
    Path("undeclared.py").write_bytes("x = 'é'\n".encode("latin-1"))
    Path("zero.py").write_bytes(b"x = 1\0\n")
    Path("self.py").symlink_to("self.py")
    Path("loop").symlink_to(".")
    write(THREE)

    said = lint("--json")

    assert said.code == 1
    unreadable = {one["path"] for one in said.json["findings"] if one["code"] == "SF003"}
    assert unreadable >= {"broken.py", "nested.py", "undeclared.py", "zero.py", "self.py"}
    assert not unreadable & {"empty.py", "latin.py", "app.py"}
    assert {"SF101", "SF106", "SF109"} <= set(said.codes)
    assert said.json["unreadable"] == len(unreadable)


def test_a_folder_that_may_not_be_read_is_said(lint, monkeypatch):
    """Silence would mean that it had been looked at. (A superuser may read everything, so the refusal is played.)"""
    write(THREE, "closed/app.py")
    write("x = 1\n", "open.py")
    real = os.scandir

    def refusing(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)

    (one,) = lint("--json").json["findings"]

    assert (one["code"], one["path"]) == ("SF003", "closed")


def test_nothing_is_imported(lint):
    """A module that deletes a file when imported is linted, and the file is still there."""
    write("keep", "precious.txt")
    write("import os, surefoot\nos.remove('precious.txt')\n", "danger.py")

    lint()

    assert Path("precious.txt").exists()
    assert "danger" not in sys.modules


def test_importing_surefoot_does_not_load_the_linter():
    """It is for the desk, not for production."""
    loaded = "import surefoot, sys; surefoot.step; print(any(name.startswith('surefoot.lint') for name in sys.modules))"

    assert (
        subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout == "False\n"
    )


def test_a_file_of_20_000_lines_is_looked_at_within_reason(codes):
    """One walk for each file: twice the lines cost about twice the time."""
    function = (
        "def f{}(path, state):\n    with open(path, 'w') as file:\n        file.write(str(state))\n    return path\n\n"
    )

    def seconds(count):
        text = "".join(function.format(number) for number in range(count))
        began = time.process_time()
        codes(text)
        return time.process_time() - began

    seconds(50)
    small, large = min(seconds(400) for _ in range(5)), min(seconds(3_200) for _ in range(3))

    assert large < small * 8 * 4
