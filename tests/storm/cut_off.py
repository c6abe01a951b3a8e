#!/usr/bin/env python3
"""Ends all connections of a process, as a network that fails does: both sides find them closed. Where it listens it listens on.
Needs the right to trace it.

  tests/storm/cut_off.py PID
"""
import ctypes
import glob
import os
import socket
import sys

SYS_PIDFD_OPEN, SYS_PIDFD_GETFD = 434, 438
libc = ctypes.CDLL(None, use_errno=True)


def cut_off(pid):
    """How many were ended. A process that has ended has none."""
    process, count = libc.syscall(SYS_PIDFD_OPEN, pid, 0), 0
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            if not os.readlink(path).startswith("socket:"):
                continue
        except OSError:
            continue  # it was closed
        fd = libc.syscall(SYS_PIDFD_GETFD, process, int(os.path.basename(path)), 0)
        if fd < 0:
            continue
        with socket.socket(fileno=fd) as connection:
            try:
                listens = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                if connection.family != socket.AF_UNIX and not listens:
                    connection.shutdown(socket.SHUT_RDWR)
                    count += 1
            except OSError:
                pass  # it is closed, or none of a network
    if process >= 0:
        os.close(process)
    return count


if __name__ == "__main__":
    ended = cut_off(int(sys.argv[1]))
    print(f"{ended} connections of process {sys.argv[1]} ended")
    sys.exit(ended == 0)
