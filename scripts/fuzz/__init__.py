"""Mutated PDFs, each read by `extract`, and held against the table of outcomes."""
