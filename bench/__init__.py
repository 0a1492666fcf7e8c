"""How fast surefoot is, as ratios to a bare loop on the same database, measured in the same minutes.

A rate says more about the disk than about the program; a ratio to a bare loop (`ref`) taken right before and right
after says what surefoot adds. `aims` holds what was promised, `work`, `trust` and `fleet` do the work (each measurement
in a process of its own), `__main__` does the rounds, `report` writes down what came out.
"""
