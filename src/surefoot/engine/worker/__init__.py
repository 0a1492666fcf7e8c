"""Workers: who drives runs, one by one, and who looks for those that can go on."""
