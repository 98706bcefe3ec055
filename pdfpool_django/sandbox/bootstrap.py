"""The launcher's first lines: learn from the web process where modules are, then be the launcher.

Run by its path in an isolated interpreter, before this package can be imported.
"""

import json
import socket
import struct
import sys

if __name__ == "__main__":
    sock = socket.socket(fileno=int(sys.argv[1]))
    first = bytearray()
    wanted = 8
    while len(first) < wanted:
        first += sock.recv(wanted - len(first)) or sys.exit("the web process is gone")
        if len(first) == 8:
            wanted += struct.unpack_from("!I", first)[0]
    hello = json.loads(first[8:])
    # The site's entries first, so that both sides have the same version of a library.
    sys.path[:] = dict.fromkeys([*hello["path"], *sys.path])
    from pdfpool_django.sandbox.launcher import main

    main(sock, hello)
