"""Where alerts go: ready-made sinks for `sf.configure(alerts=[...])`.

    sf.configure(alerts=[sf.alerts.command(["notify-send", "surefoot"]), sf.alerts.webhook("https://…"), ring])

A function of your own is called with the text, in the process and the thread of the run; the text also has `.run` and
`.kind`.
"""

from surefoot.engine.process.alerts import Alert, command, log, webhook

__all__ = ["Alert", "command", "log", "webhook"]
