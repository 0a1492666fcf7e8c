"""One process driving one run: the session, the parts it is made of, and one call of it."""
