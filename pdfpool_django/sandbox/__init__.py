"""Children that each read one document, within limits, and whatever becomes of them."""
