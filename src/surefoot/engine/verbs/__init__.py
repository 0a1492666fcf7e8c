"""The verbs of surefoot that user code calls inside a run."""
