"""A module of a site that cannot be imported, for a reason of its own."""

raise RuntimeError("the site's key is missing")
