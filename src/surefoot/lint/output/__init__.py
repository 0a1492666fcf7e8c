"""Findings for people, programs, GitHub and code scanners. Nothing here decides."""
