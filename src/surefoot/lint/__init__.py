"""Bad patterns in Python code, found before they bite: what `surefoot lint` says.

The code is read as text and never imported or run. A rule decides and prints nothing; what cannot be known is
unknown, and a rule that would have to guess stays quiet.
"""
