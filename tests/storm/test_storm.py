"""The parts of a storm, without one: `python3 tests/storm/test_storm.py` prints TAP lines."""
import collections
import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import tempfile

import cut_off
import goodput
import ledger
import schedule
import steps

KINDS = ["kill", "stop", "cut"]
number = 0


def printed(seed):
    """What a shell is told."""
    command = [sys.executable, os.path.join(os.path.dirname(__file__), "schedule.py"), str(seed), "6", "2", *KINDS]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def check(name, holds):
    global number
    number += 1
    print(f"{'ok' if holds else 'not ok'} {number} - {name}")
    return holds


def hangs(agent):
    """What a storm says whose agent is that script, in place of 300 s after one."""
    with tempfile.TemporaryDirectory() as build:
        with open(f"{build}/shoal-agent", "w") as file:
            file.write(f"#!/bin/bash\n{agent}\n")
        os.chmod(file.name, 0o755)
        command = [sys.executable, os.path.join(os.path.dirname(__file__), "storm.py"), "1", "1", "2", LAUNCHER_STOPPED]
        variables = {**os.environ, "BUILD": build, "TMPDIR": build, "STORM_LIMIT_S": "1"}
        return subprocess.run(command, env=variables, capture_output=True, text=True).stderr


def looks():
    """Four looks at a file of steps, by a clock that the test moves."""
    with tempfile.TemporaryDirectory() as folder:
        path, now = f"{folder}/steps", [100.0]
        reader, took = steps.Steps(path, lambda: now[0]), []
        for later_s, text in [(1, None), (1, STEP % (0.5, 0.25) + '{"save'), (8, '_seconds":1}\n' + STEP % (9, 0.25)), (1, STEP % (9.5, 0.25))]:
            now[0] += later_s
            if text:
                with open(path, "a") as file:
                    file.write(text)
            took.append([tuple(line) for line in reader.take()])
        return took


def numbers_read():
    with tempfile.TemporaryDirectory() as folder:
        reader = steps.Steps(f"{folder}/steps", lambda: 0)
        for text in [STEP % (0.5, 0.25), '{"save_seconds":1}\n' + STEP % (9, 0.25)]:
            with open(reader.path, "a") as file:
                file.write(text)
            reader.take()
        return reader.numbers


def ledger_of(log, numbers):
    """What is told of the steps lost."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        ledger.print_ledger(blows[:1], {0: 1.5}, log, numbers)
    return [line for line in told.getvalue().splitlines() if line.startswith("steps lost")]


def unexplained(log, numbers, may_lose):
    with contextlib.redirect_stdout(io.StringIO()):
        return ledger.print_ledger(blows[:1], {0: 1.5}, log, numbers, may_lose)


def counts_after(struck_s, is_of_new_process):
    """Which of those steps is after a blow."""
    lines = [steps.Line(*line) for look in looks() for line in look]
    return [steps.is_after(line, struck_s, is_of_new_process) for line in lines]


def raises(call, *arguments):
    try:
        call(*arguments)
    except ValueError:
        return True
    return False


def pods_ledger(blow):
    """Of a storm whose first blow cost a step: what is printed, and what it complains of."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/blows", "w") as file:
            file.write(f"10 4 {blow}\n20 5 server\n30 6 {blow}\n")
        with open(f"{folder}/steps", "w") as file:
            file.write("9 4 1\n11 5 10.5\n12 5 11.5\n22 6 11.5\n33 7 31\n")
        command = [sys.executable, os.path.join(os.path.dirname(__file__), "ledger.py"), file.name.replace("steps", "blows"), file.name]
        done = subprocess.run(command, capture_output=True, text=True)
        lines = done.stdout.splitlines()
        return [*(line.split() for line in lines[1:-1]), lines[-1]], done.stderr, done.returncode


def lost_in_pods(kind, *numbers):
    """Of a storm with one blow, at second 9.5; each step takes one second, the first from second 7 on."""
    return ledger.lost_more_in_pods([(9.5, 4, kind)], [(8 + i, step, 7) for i, step in enumerate(numbers)])


def job_that_ended(told_s=None, **training):
    """100 s of it; told_s: seconds by kind that its status has instead."""
    told_s = told_s or {"pending": 1, "step": 60, "recovery": 38.5, "suspended": 0.5}
    return {"metadata": {"creationTimestamp": "2026-01-02T03:04:05Z"},
            "status": {"completionTime": "2026-01-02T03:05:45Z", "training": {"seconds": told_s, "goodput": 0.603, "goodputPercent": "60.3%", **training}}}


def goodput_printed(job):
    """What is printed of it, what it complains of, and whether it fails."""
    command = [sys.executable, os.path.join(os.path.dirname(__file__), "goodput.py")]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True)
    return [line.split() for line in done.stdout.splitlines()], done.stderr, done.returncode


def cut_self():
    """How many of a process that has one, what its other side reads, and whether it still listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"""import socket, sys
listens = socket.create_server(("127.0.0.1", 0))
connection = socket.create_connection(("127.0.0.1", {server.getsockname()[1]}))
connection.sendall(b"%5d" % listens.getsockname()[1])
sys.stdin.read()"""
        with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as other:
            with server.accept()[0] as connection:
                port = int(connection.recv(5, socket.MSG_WAITALL))
                ended, read = cut_off.cut_off(other.pid), connection.recv(1)
            with socket.socket() as probe:
                refused = probe.connect_ex(("127.0.0.1", port))
            other.communicate()
        return ended, read, refused


AFTER_4 = [(8, 3, 1), (9, 4, 1), (10.5, 4, 9.5), (13, 5, 9.5), (14, 6, 9.5)]
STEP = '{"elapsed_seconds":%s,"step_seconds":%s,"step":7}\n'
STEPS_ONCE = """for flag; do case $flag in --logging.jsonl=*) echo '{"elapsed_seconds":9,"step_seconds":1,"step":1}' >"${flag#*=}" ;; esac; done
exec sleep 1000"""
LAUNCHER_STOPPED = "19"  # the seed whose first blow needs no rank
blows = schedule.schedule(7, 3000, 10, 4, KINDS)
counts = collections.Counter(blow.kind for blow in blows)
apart = [blow.after_s for i, blow in enumerate(blows) if i % schedule.CLOSE_EACH != schedule.CLOSE_EACH - 1]
close = [blow.after_s for blow in blows[schedule.CLOSE_EACH - 1::schedule.CLOSE_EACH]]
LOG = """Resumed at step 119 from memory (0 steps lost)
Resumed at step 120 from memory, for 2 ranks a buddy's (1 step lost)
Resumed from /ck/gpt2-130steps
Resumed at step 130 from /ck/gpt2-130steps (4 steps lost)
Resumed from /ck/gpt2-140steps
"""
rows = [
    ("the same seed gives the same storm", blows == schedule.schedule(7, 3000, 10, 4, KINDS)),
    ("a shorter one is its beginning", blows[:20] == schedule.schedule(7, 20, 10, 4, KINDS)),
    ("another seed gives another", blows != schedule.schedule(8, 3000, 10, 4, KINDS)),
    ("each kind comes as often", set(counts.values()) == {1000}),
    ("each comes once before any comes twice", all({b.kind for b in blows[i:i + 3]} == set(KINDS) for i in range(0, 3000, 3))),
    ("they are so far apart", all(5 <= s <= 15 for s in apart) and 9.5 < sum(apart) / len(apart) < 10.5),
    ("some meet ranks that recover", all(0 <= s <= schedule.CLOSE_S for s in close)),
    ("two victims are two ranks", all(blow.victim != blow.other for blow in blows)),
    ("each rank is one at some time", {blow.victim for blow in blows} == {0, 1, 2, 3}),
    ("nobody stands still for longer than said", all(schedule.SHORTEST_STOP_S <= b.seconds <= schedule.LONGEST_STOP_S for b in blows)),
    ("starts are told by where they go on from", ledger.starts(LOG) == ({"memory": 1, "a buddy": 1, "disk": 2}, [0, 1, 4])),
    ("half of all are not above the median", ledger.percentile([3, 1, 2, 9], 50) == 2 and ledger.percentile([5], 99) == 5),
    ("what is done once more was lost", ledger.lost_steps([1, 2, 3, 4, 3, 4, 5, 5, 6]) == [2, 1] and ledger.lost_steps([]) == []),
    ("... also where nothing is left that could tell it", ledger_of("", [1, 2, 3, 1, 2, 3, 4]) ==
     ["steps lost, as the starts say: 0, at most 0 at once", "steps lost: 3, at most 3 at once"]),
    ("... of one that is gone: by numbers what was done again, by starts what was known", ledger_of(LOG, [119, 120, 121, 121, 122]) ==
     ["steps lost, as the starts say: 5, at most 4 at once", "steps lost: 1, at most 1 at once"]),
    ("a start may lose what was in flight", unexplained(LOG.replace("(4 steps", "(1 step"), [1, 2, 3, 2, 3, 4], 0) == 0),
    ("... and no more, as it says or as the numbers do", [unexplained(*lost, 0) for lost in ((LOG, []), ("", [1, 2, 3, 1, 2]))] == [1, 1]),
    ("... of memory one step, of a buddy's two", [unexplained(f"Resumed at step 9 from memory{of} (2 steps lost)", [], 0) for of in
                                                  ("", ", for 2 ranks a buddy's", " of 3 ranks")] == [1, 0, 0]),
    ("... unless two launchers were lost", [unexplained(LOG, [], 1), unexplained(LOG + "Resumed at step 9 from memory (7 steps lost)", [], 1)] == [0, 1]),
    ("two launchers are, where the second has no copy yet", [ledger.explained([(0, 1, 5), (1, s, 9)]) for s in (2, 5.5, 6.5)] == [1, 0, 0]),
    ("... and not one twice", ledger.explained([(1, 1, 5), (1, 2, 6)]) == 0),
    ("the next step is the first behind the one that was done", ledger.seconds_to_next([(10, 4, "server")], AFTER_4) == [3]),
    ("... of whatever process, or of a new one", [ledger.seconds_to_next([(8.5, 3, kind)], AFTER_4) for kind in ("server", "pod")] == [[0.5], [2]]),
    ("... and must be there", raises(ledger.seconds_to_next, [(14, 4, "rank")], AFTER_4)),
    ("a storm over pods has a ledger, too", pods_ledger("pod") == (
        [["pod", "2", "1.00", "3.00", "3.00"], ["server", "1", "2.00", "2.00", "2.00"], ["all", "3", "2.00", "3.00", "3.00"],
         "steps lost: 1, at most 1 at once"], "", 0)),
    ("... and fails where a start lost more than it may", pods_ledger("rank")[1:] == ("a start after rank lost 1 steps, where 0 may be\n", 1)),
    ("behind a checkpoint no step is in flight", lost_in_pods("rank", 3, 4, 5) == [] and lost_in_pods("rank", 3, 4, 4, 5) == [(1, 0, "rank")]),
    ("... but of a pod that steps on until it ends", lost_in_pods("pod", 3, 4, 5, 6, 5) == [] and
     lost_in_pods("pod", 3, 4, 5, 6, 7, 5) == [(3, 2, "pod")]),
    ("... and none before any blow", lost_in_pods("pod", 3, 3) == [(1, 0, "nothing")]),
    ("where a job's time went is told, the most first", goodput_printed(job_that_ended()) == (
        [["step", "60.00", "60.0", "%"], ["recovery", "38.50", "38.5", "%"], ["pending", "1.00", "1.0", "%"], ["suspended", "0.50", "0.5", "%"],
         "sum 100.00 of 100 s; goodput 60.3%".split()], "", 0)),
    ("... and that it is more than all, or less", [goodput.faults(job_that_ended({"step": step, "recovery": 39.5, "suspended": 0.5}, goodput=step / (step + 39.5)))
                                                 for step in (58.9, 59.1, 61.9, 62.1)] ==
     [["98.90 s are told of 100 s: more than 1 % off"], [], [], ["102.10 s are told of 100 s: more than 1 % off"]]),
    ("... that it goes on", goodput_printed(job_that_ended(secondsKind="recovery"))[1:] == ("the job has ended, and recovery goes on\n", 1)),
    ("... that the goodput is another", goodput.faults(job_that_ended(goodput=0.6)) == ["goodput is 0.6, not the share of steps"]),
    ("... that a kind is not time", goodput.faults(job_that_ended({"step": 101, "recovery": -1}, goodput=1.01)) == ["a kind has less than no time"]),
    ("connections are ended, both sides find them closed", cut_self() == (1, b"", 0)),
    ("a shell is told the same", printed(7) == [f"{b.kind} {b.victim}" for b in schedule.schedule(7, 6, 1, 2, KINDS)]),
    ("... of another seed another order", len(printed(8)) == 6 and printed(8) != printed(7)),
    ("steps are read as they are written", looks() == [[], [(101, 0.5, 0.25, 7)], [(102, 9, 0.25, 7)], [(110, 9.5, 0.25, 7)]]),
    ("... and all their numbers are kept", numbers_read() == [7, 7]),
    ("a step that may have begun before a blow is none after it", counts_after(101.5, False) == [False, True, True]),
    ("... of a process that began before it neither", counts_after(100.3, True) == [True, False, True]),
    ("... which does not step after it for long", counts_after(100.9, True) == [False, False, False]),
    ("a run that does not begin ends the storm", "storm: storm, before the first blow: waits for the first step for 1 s" in hangs("exec sleep 1000")),
    ("... with the ends of both logs", "launcher 0's log:\nNO PEER\nstorm: the end of launcher 1's log:\nNO PEER\n" in hangs("echo NO PEER; exec sleep 1000")),
    ("a run that does not recover names the blow", "blow 0, launcher stopped (1): no step after it in 1 s" in hangs(STEPS_ONCE)),
    ("a storm of nothing is none", schedule.schedule(7, 0, 10, 4, KINDS) == []),
]
passed = [check(name, holds) for name, holds in rows]
print(f"1..{number}")
raise SystemExit(not all(passed))
