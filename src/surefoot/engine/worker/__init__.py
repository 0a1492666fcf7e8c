"""Workers: the driver drives named runs, the search finds runs that can go on."""
