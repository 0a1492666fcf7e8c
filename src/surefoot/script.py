"""A script's own command line, as a public name.

What it does is in `cli/script.py`, which is loaded when the script gets there: importing surefoot loads no command.
"""

import sys
from typing import Any, NoReturn

from surefoot.engine.workflow import AsyncWorkflow, Workflow


def main(workflow: Workflow[..., Any] | AsyncWorkflow[..., Any], /) -> NoReturn:
    """Make a script its own `surefoot run`: `python app.py --id ID [ARGS]`. The last line of the script; it ends the program.

    The id and the arguments come from the command line, as with `surefoot run`: an argument is JSON if it parses as JSON, else
    a string; keywords are written `name=value`. The result goes to standard output as JSON, everything else to standard
    error, and the exit codes are those of the command line. After Ctrl-C and at a stop it says how to go on, with the command
    to paste. For blocking and for async workflows; it is called, not awaited.
    """
    from surefoot.cli import script

    sys.exit(script.main(workflow))
