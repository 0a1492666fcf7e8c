"""What users declared: workflows, calls and their options; and where in a run the code is."""
