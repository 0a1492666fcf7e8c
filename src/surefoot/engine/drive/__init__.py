"""From a run's id to its end, stop or wait: start, takeover, rehearsal, the performers of wishes, fallback."""
