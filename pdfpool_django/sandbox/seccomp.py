"""The system calls that a child may still make, once it has what it needs: no opening of files.

A classic BPF program in the kernel answers every other call with EPERM
(``man 2 seccomp``). The numbers are those of the kernel's tables for the two
architectures (``arch/x86/entry/syscalls/syscall_64.tbl``,
``include/uapi/asm-generic/unistd.h``).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2

_RET_KILL_PROCESS = 0x80000000
_RET_ERRNO = 0x00050000
_RET_ALLOW = 0x7FFF0000

# Codes of classic BPF (``linux/bpf_common.h``).
_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

# Offsets in ``struct seccomp_data``; the low half of an argument, as both are little-endian.
_NUMBER = 0
_ARCHITECTURE = 4
_FIRST_ARGUMENT = 16
_FOURTH_ARGUMENT = 40

INSTRUCTION = struct.Struct("HBBI")
_AT_EMPTY_PATH = 0x1000

_ACTIONS = Path("/proc/sys/kernel/seccomp/actions_avail")


@dataclass(frozen=True, slots=True)
class Architecture:
    """What the filter must know of an architecture."""

    token: int
    """``AUDIT_ARCH_*`` (``linux/audit.h``)."""
    numbers: dict[str, int]


_X86_64 = Architecture(
    token=0xC000003E,
    numbers={
        "read": 0,
        "write": 1,
        "close": 3,
        "fstat": 5,
        "poll": 7,
        "lseek": 8,
        "mmap": 9,
        "mprotect": 10,
        "munmap": 11,
        "brk": 12,
        "rt_sigaction": 13,
        "rt_sigprocmask": 14,
        "rt_sigreturn": 15,
        "pread64": 17,
        "readv": 19,
        "writev": 20,
        "sched_yield": 24,
        "mremap": 25,
        "madvise": 28,
        "nanosleep": 35,
        "getpid": 39,
        "sendto": 44,
        "recvfrom": 45,
        "sendmsg": 46,
        "recvmsg": 47,
        "exit": 60,
        "getcwd": 79,  # which Pillow asks for when it writes a picture into memory
        "getrlimit": 97,
        "getrusage": 98,
        "getuid": 102,
        "getppid": 110,
        "sigaltstack": 131,
        "setrlimit": 160,
        "gettid": 186,
        "futex": 202,
        "restart_syscall": 219,
        "clock_gettime": 228,
        "clock_getres": 229,
        "clock_nanosleep": 230,
        "exit_group": 231,
        "tgkill": 234,
        "newfstatat": 262,
        "ppoll": 271,
        "preadv": 295,
        "prlimit64": 302,
        "getrandom": 318,
        "preadv2": 327,
        "rseq": 334,
    },
)

_AARCH64 = Architecture(
    token=0xC00000B7,
    numbers={
        "getcwd": 17,
        "close": 57,
        "lseek": 62,
        "read": 63,
        "write": 64,
        "readv": 65,
        "writev": 66,
        "pread64": 67,
        "preadv": 69,
        "ppoll": 73,
        "newfstatat": 79,
        "fstat": 80,
        "exit": 93,
        "exit_group": 94,
        "futex": 98,
        "nanosleep": 101,
        "clock_gettime": 113,
        "clock_getres": 114,
        "clock_nanosleep": 115,
        "sched_yield": 124,
        "restart_syscall": 128,
        "tgkill": 131,
        "sigaltstack": 132,
        "rt_sigaction": 134,
        "rt_sigprocmask": 135,
        "rt_sigreturn": 139,
        "getrlimit": 163,
        "setrlimit": 164,
        "getrusage": 165,
        "getpid": 172,
        "getppid": 173,
        "getuid": 174,
        "gettid": 178,
        "sendto": 206,
        "recvfrom": 207,
        "sendmsg": 211,
        "recvmsg": 212,
        "brk": 214,
        "munmap": 215,
        "mremap": 216,
        "mmap": 222,
        "mprotect": 226,
        "madvise": 233,
        "prlimit64": 261,
        "getrandom": 278,
        "preadv2": 286,
        "rseq": 293,
    },
)

ARCHITECTURES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def why_unavailable() -> str | None:
    """Return why system calls cannot be filtered here; ``None`` where they can."""
    if sys.platform != "linux":
        return f"{sys.platform} has no seccomp"
    if platform.machine() not in ARCHITECTURES or struct.calcsize("P") != 8:
        return f"there is no list of system calls for {platform.machine()}"
    try:
        actions = _ACTIONS.read_text(encoding="ascii").split()
    except OSError:
        return "the kernel does not tell that it can"
    return None if "errno" in actions else "the kernel cannot refuse a call with an error"


def install() -> None:
    """Refuse this process, from now on and for ever, all calls that are not on the list.

    ``PR_SET_NO_NEW_PRIVS`` must be set, or the process privileged.

    Raises:
        OSError: The kernel did not take the filter.
    """
    code = program(ARCHITECTURES[platform.machine()], os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    count = len(code) // INSTRUCTION.size
    filter_program = struct.pack("HxxxxxxP", count, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_program, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def program(architecture: Architecture, pid: int) -> bytes:
    """Return the filter for a process, as the kernel takes it.

    Three calls are judged by an argument: a process may signal itself only,
    as ``abort`` does, change limits of itself only, and look at a file only
    by its descriptor.
    """
    by_argument = {
        "tgkill": (_FIRST_ARGUMENT, pid),
        "prlimit64": (_FIRST_ARGUMENT, 0),
        "newfstatat": (_FOURTH_ARGUMENT, _AT_EMPTY_PATH),
    }
    code = [
        _instruction(_LOAD, value=_ARCHITECTURE),
        _instruction(_JUMP_IF_EQUAL, 1, 0, architecture.token),
        _instruction(_RETURN, value=_RET_KILL_PROCESS),
        _instruction(_LOAD, value=_NUMBER),
    ]
    for name, number in architecture.numbers.items():
        if name in by_argument:
            code += _allow_if(number, *by_argument[name])
        else:
            code.append(_instruction(_JUMP_IF_EQUAL, 0, 1, number))
            code.append(_instruction(_RETURN, value=_RET_ALLOW))
    code.append(_instruction(_RETURN, value=_RET_ERRNO | errno.EPERM))
    return b"".join(code)


def _allow_if(number: int, argument: int, value: int) -> list[bytes]:
    return [
        _instruction(_JUMP_IF_EQUAL, 0, 4, number),
        _instruction(_LOAD, value=argument),
        _instruction(_JUMP_IF_EQUAL, 0, 1, value),
        _instruction(_RETURN, value=_RET_ALLOW),
        _instruction(_RETURN, value=_RET_ERRNO | errno.EPERM),
    ]


def _instruction(code: int, if_true: int = 0, if_false: int = 0, value: int = 0) -> bytes:
    return INSTRUCTION.pack(code, if_true, if_false, value)
