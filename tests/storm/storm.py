#!/usr/bin/env python3
"""Trains while its ranks and launchers are killed, stopped and cut off, and compares the end with a run that nothing happened to.

Two launchers on this machine train a small GPT-2 with dropout, with a checkpoint in memory after each step. The schedule is a pure
function of the seed (tests/storm/schedule.py). After the last blow the run is asked to stop, which saves a checkpoint; a calm run
of as many steps must have saved the same bytes.

  tests/storm/storm.py [KILLS] [EVERY] [RANKS] [SEED]    blows (20), seconds between them (2), ranks of both (4), a number

ELASTIC=1: three launchers of an elastic run with as many reduction slots as ranks (6). One that is killed may stay away until the
others have gone on without it; it comes back before the next blow.
"""
import glob, os, random, shutil, signal, socket, struct, subprocess, sys, tempfile, time

from collections import namedtuple

import ledger
from cut_off import cut_off as end_connections
from schedule import schedule
from steps import Steps, is_after

ELASTIC = os.environ.get("ELASTIC", "") not in ("", "0")
NODES = 3 if ELASTIC else 2
SHRINK_AFTER_S = 2
DATA_TOKENS = 4096
LIMIT_S = float(os.environ.get("STORM_LIMIT_S", 300))  # of each wait: who hangs so long tells what it waits for, and ends


def number(place, default):
    return int(sys.argv[place]) if len(sys.argv) > place and sys.argv[place] else default


KILLS, EVERY, RANKS = number(1, 20), number(2, 2), number(3, 2 * NODES)
SEED = number(4, random.SystemRandom().randrange(1 << 31))
AGENT = os.path.join(os.environ.get("BUILD", "build/release"), "shoal-agent")
if RANKS < NODES or RANKS % NODES:
    sys.exit(f"storm: RANKS must be {NODES}, {2 * NODES}, {3 * NODES}, ...: those of {NODES} launchers")


def flags(out, name, *more):
    return ["--model.type=gpt2", "--hidden_size=32", "--num_hidden_layers=2", "--num_attention_heads=2", "--vocab_size=64",
            "--max_position_embeddings=16", "--dropout=0.1", f"--dataset={out}/tokens.bin", "--data.format=llmc_bin",
            "--max_seq_length=16", "--batch_size=2", "--lr=0.001", "--schedule.type=constant", "--warmup_steps=0",
            "--num_train_epochs=1000000", "--eval_strategy=no", "--device=cpu", "--sharding_strategy=FULL_SHARD",
            "--prometheus_port=0", "--logging_steps=1", f"--logging.jsonl={out}/{name}.jsonl", f"--checkpoint.dir={out}/{name}",
            "--keep_last=2", "--memory_every_steps=1", "--memory_buddies",
            *([f"--parallel.reduction_slots={RANKS}"] if ELASTIC else []), *more]


def free_port():
    """Below those of connections."""
    port = 20000 + os.getpid() % 5000
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
        port += 1


class Run:
    """The launchers of one run, which come back when they are killed."""

    def __init__(self, out, name, *more):
        self.out, self.name, self.port = out, name, free_port()
        self.flags = flags(out, name, *more)
        self.doing = "before the first blow"
        self.struck = []  # when the blow's signals were sent
        self.away = None  # a launcher that was killed and is not to come back yet
        self.look = lambda: None  # called while something is waited for
        self.launchers = [self.launch(node) for node in range(NODES)]

    def launch(self, node):
        fixed = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port), "WORLD_SIZE": str(RANKS), "RANK": str(node),
                 "PET_NNODES": str(NODES), "PET_NODE_RANK": str(node)}
        elastic = {"PET_RDZV_ENDPOINT": f"127.0.0.1:{self.port}", "PET_RDZV_BACKEND": "c10d", "PET_NNODES": f"{NODES - 1}:{NODES}",
                   "SHOAL_NNODES": str(NODES), "SHOAL_SHRINK_AFTER": str(SHRINK_AFTER_S), "POD_NAME": f"{self.name}-worker-{node}"}
        variables = {**(elastic if ELASTIC else fixed), "PET_NPROC_PER_NODE": str(RANKS // NODES), "SHOAL_RUN_ID": self.name,
                     "SHOAL_RESTART_COUNT": "0", "PET_MAX_RESTARTS": "1000000", "OMP_WAIT_POLICY": "passive"}
        with open(self.log(node), "a") as log:
            return subprocess.Popen([AGENT, *self.flags], env={**os.environ, **variables}, stdout=log, stderr=subprocess.STDOUT)

    def log(self, node):
        return f"{self.out}/{self.name}.{node}.log"

    def check(self):
        for node, launcher in enumerate(self.launchers):
            if launcher.poll() is not None and node != self.away:
                self.fail(f"launcher {node} has ended with {launcher.returncode}")

    def fail(self, what):
        """Tells the ends of both logs."""
        for node in range(NODES):
            print(f"storm: the end of launcher {node}'s log:", file=sys.stderr)
            with open(self.log(node)) as log:
                sys.stderr.writelines(log.readlines()[-20:])
        sys.exit(f"storm: {self.name}, {self.doing}: {what}")

    def wait(self, what, find):
        """Until find() finds something, which it returns."""
        end = time.monotonic() + LIMIT_S
        while not (found := find()):
            self.check()
            self.look()
            if time.monotonic() > end:
                self.fail(f"waits for {what} for {LIMIT_S:g} s")
            time.sleep(0.01)
        return found

    def wait_for_end(self, node):
        try:
            return self.launchers[node].wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.fail(f"launcher {node} does not end in {LIMIT_S:g} s")

    def ranks(self, node):
        """Their processes, in the order in which they were started; fewer while they start."""
        pid = self.launchers[node].pid
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]

    def rank(self, wanted):
        """Waits until that rank has a process. Ranks stay ranks of their launchers: rank r is one of launcher r // (RANKS / NODES)."""
        per_node = RANKS // NODES

        return self.wait(f"the process of rank {wanted}", lambda: self.all_ranks(wanted // per_node))[wanted % per_node]

    def all_ranks(self, node):
        pids = self.ranks(node)
        return pids if len(pids) == RANKS // NODES else None

    def shrinks(self):
        """How often the run has gone on with a launcher less."""
        with open(self.log(0)) as log:
            return log.read().count(f"goes on with {NODES - 1} nodes instead of {NODES}")

    def end(self):
        for launcher in self.launchers:
            launcher.send_signal(signal.SIGTERM)
        self.doing = "asked to stop"
        return [self.wait_for_end(node) for node in range(NODES)]

    def complete(self):
        """Waits for its end, as long as it goes on."""
        def size():
            return os.path.getsize(path) if os.path.exists(path) else 0
        path, last, end = f"{self.out}/{self.name}.jsonl", -1, 0
        self.doing = "which nothing happens to"
        while any(launcher.poll() is None for launcher in self.launchers):
            if size() != last:
                last, end = size(), time.monotonic() + LIMIT_S
            if time.monotonic() > end:
                self.fail(f"no step in {LIMIT_S:g} s")
            time.sleep(0.1)
        return [launcher.returncode for launcher in self.launchers]

    def again(self, node):
        self.wait_for_end(node)
        self.launchers[node] = self.launch(node)

    def keep_away(self, node):
        """Kills a launcher when all take part."""
        for one in range(NODES):
            self.wait(f"the ranks of launcher {one}", lambda one=one: self.all_ranks(one))
        self.away, self.shrunk_before = node, self.shrinks()
        send(self, self.launchers[node].pid, signal.SIGKILL)

    def bring_back(self):
        """Who was kept away comes back when the others have gone on, and takes part."""
        if self.away is None:
            return
        self.wait(f"launcher 0 to go on without launcher {self.away}", lambda: self.shrinks() > self.shrunk_before)
        back, self.away = self.away, None
        self.again(back)
        self.wait(f"the ranks of launcher {back}, which is back", lambda: self.all_ranks(back))

    def kill(self):
        for launcher in self.launchers:
            if launcher.poll() is None:
                launcher.send_signal(signal.SIGCONT)
                launcher.kill()
                launcher.wait()


# ---- blows: each returns when it is over ----


def send(run, pid, which):
    run.struck.append(time.monotonic())
    try:
        os.kill(pid, which)
    except ProcessLookupError:
        pass  # it ended first


def kill_rank(run, blow):
    send(run, run.rank(blow.victim), signal.SIGKILL)


def kill_two_ranks(run, blow):
    for pid in [run.rank(blow.victim), run.rank(blow.other)]:
        send(run, pid, signal.SIGKILL)


def stop(run, blow, pids):
    for pid in pids:
        send(run, pid, signal.SIGSTOP)
    time.sleep(blow.seconds)
    for pid in pids:
        send(run, pid, signal.SIGCONT)


def stop_rank(run, blow):
    stop(run, blow, [run.rank(blow.victim)])


def node_of(blow):
    return blow.victim % NODES


def kill_launcher(run, blow):
    send(run, run.launchers[node_of(blow)].pid, signal.SIGKILL)
    run.again(node_of(blow))


def replace_launcher(run, blow):
    send(run, run.launchers[node_of(blow)].pid, signal.SIGTERM)
    run.again(node_of(blow))


def keep_launcher_away(run, blow):
    run.keep_away(1 + blow.victim % (NODES - 1))  # all meet at launcher 0's


def stop_launcher(run, blow):
    stop(run, blow, [run.launchers[node_of(blow)].pid])


def stop_node(run, blow):
    """As a machine that pauses, with all that is on it."""
    stop(run, blow, [run.launchers[node_of(blow)].pid, *run.ranks(node_of(blow))])


def cut_off(run, blow):
    """Ends all connections of a rank, as a network that fails does: both sides find them closed."""

    def try_it():
        run.struck[:] = [time.monotonic()]
        return end_connections(run.rank(blow.victim))

    run.wait("a rank with connections", try_it)
    run.struck.append(time.monotonic())


KINDS = {"rank killed": kill_rank, "two ranks killed": kill_two_ranks, "rank stopped": stop_rank, "rank cut off": cut_off,
         "launcher killed": kill_launcher, "launcher stopped": stop_launcher, "launcher replaced": replace_launcher,
         "both stopped": stop_node}
if ELASTIC:
    KINDS["launcher kept away"] = keep_launcher_away
ENDS_LAUNCHER = {"launcher kept away", "launcher killed", "launcher replaced"}
KILLERS = {"launcher kept away", "rank killed", "two ranks killed", "launcher killed", "launcher replaced"}  # no process steps on


# ---- the run ----

# A blow behind which no step has ended yet: its first and last signal, and whether only new processes step behind it.
Waiting = namedtuple("Waiting", "name first_s last_s kills")


def look(run, steps, waiting, seconds):
    """Notes for each blow that waits for it the end of the next step."""
    for line in steps.take():
        for i, blow in list(waiting.items()):
            if is_after(line, blow.last_s, blow.kills):
                seconds[i] = time.monotonic() - blow.first_s
                del waiting[i]
    for blow in waiting.values():
        if time.monotonic() > blow.first_s + LIMIT_S:
            run.fail(f"{blow.name}: no step after it in {LIMIT_S:g} s")


def follow(run, waiting, until):
    """Waits until then. None: until no blow waits for a step."""
    while waiting if until is None else time.monotonic() < until:
        run.check()
        run.look()
        time.sleep(0.01)


def storm(run, blows):
    """Seconds from each blow to the end of the next step, the steps, and what ended launchers, for ledger.explained()."""
    steps, waiting, seconds, ends = Steps(f"{run.out}/{run.name}.jsonl", time.monotonic), {}, {}, []
    run.wait("the first step", steps.take)
    begin = time.monotonic()
    run.look = lambda: look(run, steps, waiting, seconds)
    for i, blow in enumerate(blows):
        follow(run, waiting, time.monotonic() + blow.after_s)
        run.bring_back()
        run.doing = f"blow {i}, {blow.kind} ({blow.victim})"
        print(f"{time.monotonic() - begin:8.1f} s {blow.kind} ({blow.victim})", flush=True)
        run.struck = []
        KINDS[blow.kind](run, blow)
        if blow.kind in ENDS_LAUNCHER:
            ends.append((i, 1 + blow.victim % (NODES - 1) if blow.kind == "launcher kept away" else node_of(blow), run.struck[0]))
        waiting[i] = Waiting(run.doing, run.struck[0], run.struck[-1], blow.kind in KILLERS)
    run.doing = "behind the last blow"
    follow(run, waiting, None)
    run.bring_back()
    return seconds, steps, [(node, struck_s, struck_s + seconds[i]) for i, node, struck_s in ends]


def write_tokens(path):
    """llm.c's format: 256 numbers of header, then ids of 16 bits."""
    rng = random.Random(1)
    with open(path, "wb") as file:
        file.write(struct.pack("<256i", 20240520, 1, DATA_TOKENS, *[0] * 253))
        file.write(struct.pack(f"<{DATA_TOKENS}H", *(rng.randrange(64) for _ in range(DATA_TOKENS))))


def saved(out, name):
    """The last step saved, and the files of its tensors by name."""
    last = max(glob.glob(f"{out}/{name}/*steps"), key=lambda path: int(path.rsplit("-", 1)[1][:-5]))
    files = [path for path in glob.glob(f"{last}/**", recursive=True) if path.endswith(".safetensors")]
    return int(last.rsplit("-", 1)[1][:-5]), {os.path.relpath(path, last): path for path in files}


def same(a, b):
    def read(path):
        with open(path, "rb") as file:
            return file.read()
    return a.keys() == b.keys() and bool(a) and all(read(a[name]) == read(b[name]) for name in a)


def main(out):
    print(f"storm: {KILLS} blows, {EVERY} s apart, on {RANKS} ranks of {NODES} launchers, seed {SEED}", flush=True)
    write_tokens(f"{out}/tokens.bin")
    run = Run(out, "storm", "--max_steps=1000000000", "--save_steps=200")
    blows = schedule(SEED, KILLS, EVERY, RANKS, list(KINDS))
    try:
        seconds, steps, ends = storm(run, blows)
        codes = run.end()
        if any(code != 143 for code in codes):
            sys.exit(f"storm: asked to stop, the launchers ended with {codes}")
    finally:
        run.kill()
    steps.take()  # the last ones, until it was asked to stop
    with open(run.log(0)) as log:
        lost_more = ledger.print_ledger(blows, seconds, log.read(), steps.numbers, ledger.explained(ends))
    if ELASTIC:
        print(f"times that the run went on with {NODES - 1} launchers of {NODES}: {run.shrinks()}")
    last, ours = saved(out, "storm")
    run = Run(out, "calm", f"--max_steps={last}")
    try:
        codes = run.complete()
        if any(codes):
            sys.exit(f"storm: the calm run ended with {codes}")
    finally:
        run.kill()
    equal = same(ours, saved(out, "calm")[1])
    print(f"weights and optimizer state after {last} steps: {'equal to' if equal else 'NOT EQUAL TO'} the calm run's")
    if lost_more:
        print(f"storm: {lost_more} starts lost more steps than were in flight", file=sys.stderr)
    return equal and not lost_more


folder = tempfile.mkdtemp(prefix="storm.")
passed = False
try:
    passed = main(folder)
finally:
    if passed:
        shutil.rmtree(folder)
    else:
        print(f"storm: what it has left is in {folder}; SEED={SEED} begins it again", file=sys.stderr)
sys.exit(not passed)
