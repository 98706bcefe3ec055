"""Adapters of PDF libraries, imported in children only."""
