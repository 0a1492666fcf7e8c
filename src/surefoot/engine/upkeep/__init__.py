"""Operations on a whole store: verify, prune, export, adopt."""
