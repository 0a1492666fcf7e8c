"""What user code calls inside a run besides its own steps and effects."""
