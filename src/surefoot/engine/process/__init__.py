"""What one process has: its stores and runtimes, the one writer of each run, clocks, settings, observers."""
