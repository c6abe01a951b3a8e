"""What the command lines of tests/sieve/sieve.py and tests/acto/acto.py have in common. Errors are argparse's: exit code 2, and why."""
import argparse
import os
import subprocess

import operator_program
from http1 import Api


class Refused(Exception):
    """What is asked for names nothing that there is, or the API server lacks what the tool needs."""


def whole(text):
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)


def parser(tool, described, seats_are, seed, words):
    """described: the tool's own text; seats_are: what runs side by side; seed: for who gives none; words: what those of --only are."""
    found = argparse.ArgumentParser(tool, description=described, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--draw", type=whole, metavar="N", help=f"tries N of the {seats_are} instead of all, chosen by the seed")
    found.add_argument("--seed", type=int, default=seed, metavar="S",
                       help="what --draw goes by (a new one each time, which is printed): the same seed chooses the same")
    found.add_argument("--only", nargs="+", default=[], metavar="WORD", help=words)
    found.add_argument("--seats", type=whole, default=8, metavar="N", help=f"{seats_are} at once (8): each has a namespace and an operator of its own")
    found.add_argument("--first", action="store_true", help="ends after the first divergence instead of trying the rest")
    found.add_argument("--check", action="store_true", help="looks at the arguments and for the operator's program, and tries nothing; needs no API server")
    return found


def check_program():
    if not os.access(operator_program.OPERATOR, os.X_OK):
        raise Refused(f"there is no program {operator_program.OPERATOR}: make programs, or set $BUILD to the folder that has it")


def api(variable, script):
    """The API server whose kubeconfig the environment variable names. script: that has one of its own."""
    path = os.environ.get(variable)
    if not path:
        raise Refused(f"${variable} names no kubeconfig: set it, or use {script}, which starts an API server of its own")
    check_program()
    try:
        return Api(path)
    except subprocess.CalledProcessError as failed:
        raise Refused(f"${variable}={path} cannot be used: {failed.stderr.decode().strip()}")
    except (KeyError, TypeError, OSError, ValueError) as wrong:
        raise Refused(f"${variable}={path} has no server and user with certificates in it: {wrong!r}")


def check_words(found, only, names):
    """names: [(what a word of --only is, those that there are or None for any text)]."""
    if len(only) > len(names):
        found.error(f"--only: {only[len(names)]!r} is one word too many; a name with spaces needs quotes")
    for word, (what, known) in zip(only, names):
        if known is not None and word not in known:
            found.error(f"--only: there is no {what} {word!r}, only {', '.join(map(repr, known))}")
