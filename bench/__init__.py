"""How fast surefoot is, as ratios to a bare SQLite loop measured in the same minutes.

A rate says more about the disk than about the program; a ratio to `ref` taken right before and right
after says what surefoot adds. `aims` holds what was promised, `work` does the work (each measurement in
a process of its own), `__main__` does the rounds, `report` writes down what came out.
"""
