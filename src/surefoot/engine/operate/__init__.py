"""What operators do to a run from outside: look, plan, settle, answer, match, retry, fork, cancel."""
