"""What is told to a site's receivers, in the thread of the caller whom it is about.

A receiver that fails is logged by Django, and changes nothing for the caller.

`extraction_finished`: a caller's extraction has ended. Sent with:

- ``caller``: the caller's name;
- ``sha256``: the document's SHA-256;
- ``started``: whether this caller's request started the job, or joined one;
- ``extraction``: the `Extraction`, or ``None`` where no page could be read;
- ``error``: ``None``, or the `PdfPoolError` that says why not;
- ``elapsed``: seconds from the request to now, the wait for a slot included.

`extraction_refused`: a request ended before its document was read. Sent with:

- ``caller``: the caller's name, or ``None`` where there is none;
- ``error``: the `PdfPoolError` that says why.

A caller who leaves, by a timeout or by closing a stream, is told of by neither.
"""

from __future__ import annotations

from django.dispatch import Signal

extraction_finished = Signal()
extraction_refused = Signal()
