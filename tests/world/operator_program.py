"""The operator's program of this build ($BUILD), as a process that ends with the test."""
import ctypes
import os
import signal
import subprocess

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)
OPERATOR = os.path.join(os.environ.get("BUILD", "build/release"), "shoal-operator")


def end_with_us():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(kubeconfig, namespace, name, flags, log):
    """log: a path, to which it is added."""
    served = [f"--{what}-bind-address=0" for what in ("metrics", "health-probe", "ui")]  # nowhere: many run at once
    arguments = ["--kubeconfig", kubeconfig, "--namespace", namespace, *served, *flags]
    with open(log, "a") as file:
        return subprocess.Popen([OPERATOR, *arguments], stdout=file, stderr=file, preexec_fn=end_with_us,
                                env={**os.environ, "MY_POD_NAMESPACE": namespace, "MY_POD_NAME": name})
