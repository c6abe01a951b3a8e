#!/usr/bin/env python3
"""Seconds from `kill -9` of a rank to the end of the next step.

Two launchers on this machine train the MNIST network, and then the 25M-parameter Llama of bench-llama. Their ranks are killed one
after the other, of one launcher and of the other in turn. The median and the worst are printed, and how many steps were
trained once more.

  tests/bench/bench_recovery.py [RANKS] [KILLS]     of both launchers together (default 8); kills per row (default 5)
"""
import json, os, random, shutil, signal, statistics, subprocess, sys, time

RANKS = int(sys.argv[1]) if len(sys.argv) > 1 else 8
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
AGENT = os.environ.get("AGENT", "build/release/shoal-agent")
DATA = os.environ.get("BENCH_DATA", "/usr/share/datasets/fashion-mnist")
OUT = os.path.abspath("build/bench/recovery")
LLAMA = "tests/bench/models/llama"
STEPS_BETWEEN = 10  # that a round has trained when its rank is killed
PORT = 23790


def launch(name, node, flags):
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(PORT), "PET_NNODES": "2", "PET_NODE_RANK": str(node),
                 "PET_NPROC_PER_NODE": str(RANKS // 2), "SHOAL_RUN_ID": name, "PET_MAX_RESTARTS": str(KILLS),
                 "OMP_WAIT_POLICY": "passive"}
    command = [AGENT, *flags, "--device=cpu", "--eval_strategy=no", "--max_steps=1000000", "--logging_steps=1",
               f"--logging.jsonl={OUT}/{name}.jsonl", "--logging.prometheus_port=0", f"--checkpoint.dir={OUT}/{name}",
               "--save_steps=5", "--keep_last=2"]
    with open(f"{OUT}/{name}.{node}.log", "w") as log:
        return subprocess.Popen(command, env={**os.environ, **variables}, stdout=log, stderr=subprocess.STDOUT)


def lines(path, launchers):
    """(step, seconds that its process had run, when this was seen) of each line, as it is written."""
    while not os.path.exists(path):
        check(launchers)
        time.sleep(0.01)
    with open(path) as file:
        rest = ""
        while True:
            rest += file.readline()
            if not rest.endswith("\n"):
                check(launchers)
                time.sleep(0.002)
                continue
            row = json.loads(rest)
            if "elapsed_seconds" in row:  # else it is about an epoch
                yield row["step"], row["elapsed_seconds"], time.monotonic()
            rest = ""


def check(launchers):
    if any(launcher.poll() is not None for launcher in launchers):
        sys.exit(f"bench-recovery: a launcher has ended, see {OUT}")


def kill_a_rank(launcher):
    with open(f"/proc/{launcher.pid}/task/{launcher.pid}/children") as file:
        os.kill(int(random.choice(file.read().split())), signal.SIGKILL)


def measure(name, flags):
    launchers = [launch(name, node, flags) for node in range(2)]
    seconds, again, killed, first, before = [], [], None, None, None
    try:
        for step, elapsed, now in lines(f"{OUT}/{name}.jsonl", launchers):
            if killed and elapsed < before[1]:  # a new process begins at 0
                seconds.append(now - killed)
                again.append(max(0, before[0] + 1 - step))
                killed = None
            if killed is None and len(seconds) == KILLS:
                break
            if first is None or elapsed < before[1]:
                first = step
            if killed is None and step == first + STEPS_BETWEEN:
                killed = time.monotonic()
                kill_a_rank(launchers[len(seconds) % 2])
            before = (step, elapsed)
    finally:
        for launcher in launchers:
            launcher.terminate()
        for launcher in launchers:
            launcher.wait()
    print(f"{name:10} {RANKS:5} {KILLS:5} {statistics.median(seconds):9.2f} {max(seconds):9.2f} {max(again):12}", flush=True)


def make_words():
    """Rows of random words that are one id each: what they are does not matter."""
    with open(f"{LLAMA}/config.json") as file:
        words = [f"w{i}" for i in range(json.load(file)["vocab_size"] - 5)]
    with open(f"{OUT}/vocab.txt", "w") as file:
        file.writelines(word + "\n" for word in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    with open(f"{OUT}/rows.jsonl", "w") as file:
        for _ in range(200):
            file.write(json.dumps({"text": " ".join(random.choices(words, k=64))}) + "\n")


shutil.rmtree(OUT, ignore_errors=True)
os.makedirs(OUT)
make_words()
print(f"{'model':10} {'ranks':>5} {'kills':>5} {'median s':>9} {'worst s':>9} {'steps again':>12}")
measure("mnist", ["--preset=mnist", f"--data.root={DATA}", "--batch_size=8"])
measure("llama", [f"--model_name_or_path={LLAMA}", f"--dataset={OUT}/rows.jsonl", f"--tokenizer={OUT}", "--drop_last",
                  "--num_train_epochs=1000000", "--batch_size=1", "--max_seq_length=64"])
