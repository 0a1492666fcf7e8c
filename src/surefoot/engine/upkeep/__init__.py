"""What is done to a whole store: verify, prune, export, adopt."""
