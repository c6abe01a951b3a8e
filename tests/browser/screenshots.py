"""Takes the pictures of docs/page.md, docs/cli.md and docs/running-locally.md: `tests/browser/screenshots.py FOLDER IMAGES`
(make screenshots).

Three trainings of this machine stand in the place of pods; the finished jobs beside them are those of the tests.
"""
import json
import os
import random
import struct
import sys
import time

import kubernetes
import terminal_picture
import world
from webdriver import Browser, wait_for

PICTURES = "docs/pictures"
SECONDS = 45  # of training before the first picture
TOKENS = 1 << 16
PICTURE_BYTES_MAX = 80000


def write_tokens(path):
    """Ids as llm.c keeps them, of which each follows from the one before, but for each fourth."""
    chance, ids = random.Random(1), [0]
    while len(ids) < TOKENS:
        ids.append(chance.randrange(256) if chance.random() < 0.25 else (7 * ids[-1] + 3) % 256)
    with open(path, "wb") as file:
        file.write(struct.pack("<256i", 20240520, 1, TOKENS, *[0] * 253) + struct.pack(f"<{TOKENS}H", *ids))


def language(path, family, *more):
    return [f"--model.type={family}", "--hidden_size=64", "--num_hidden_layers=4", "--num_attention_heads=4", "--vocab_size=256",
            "--max_position_embeddings=64", f"--dataset={path}", "--data.format=llmc_bin", "--max_seq_length=64", "--lr=0.001",
            "--warmup_steps=20", "--num_train_epochs=1000", "--eval_strategy=steps", "--eval_steps=100", "--save_steps=100", "--keep_last=2", *more]


def main(folder, images):
    write_tokens(f"{folder}/tokens.bin")
    trainings = {
        "mnist": ["--preset=mnist", "--nproc_per_node=2", f"--data.root={images}", "--eval_size=64", "--batch_size=16", "--train_size=4096", "--epochs=40",
                  "--save_steps=64"],
        "gpt2": language(f"{folder}/tokens.bin", "gpt2", "--nproc_per_node=2", "--batch_size=8", "--max_steps=9000"),
        "llama": language(f"{folder}/tokens.bin", "llama", "--nproc_per_node=1", "--batch_size=8", "--max_steps=12000", "--intermediate_size=128"),
    }
    cluster, agents = kubernetes.Cluster(), {}
    operator = world.Operator(folder, cluster)
    try:
        for job in [*world.finished_jobs(40), world.job("bert", gpus=8, annotations={"pods": "ErrImagePull: manifest unknown: shoal-agent:0.2"})]:
            cluster.put(kubernetes.JOBS, job, "ADDED")
        for name, flags in trainings.items():
            agents[name] = world.Agent(folder, name, *flags)
            cluster.put(kubernetes.JOBS, world.job(name, port=agents[name].port), "ADDED")
        operator.start()
        with Browser(folder) as browser:
            time.sleep(SECONDS)
            take(browser, operator, agents)
            take_tables(browser, operator)
            take_top(browser, operator, folder)
        for agent in agents.values():
            agent.close()
        with Browser(folder) as browser:
            take_run(browser, folder, trainings["gpt2"])
    finally:
        operator.close()
        for agent in agents.values():
            agent.close()
        cluster.close()


def taken(browser, path, **part):
    browser.picture(path, **part)
    size = os.path.getsize(path)
    print(f"{path}: {size} bytes", flush=True)
    if size > PICTURE_BYTES_MAX:
        raise RuntimeError(f"{path} has more than {PICTURE_BYTES_MAX} bytes")


def take(browser, operator, agents):
    views = [("jobs", operator.url, "table", "Jobs", 800, 900),
             ("job", f"{operator.url}#/default/mnist", "heading", "Ranks", 1500, 1500),
             ("run", f"http://127.0.0.1:{agents['gpt2'].port}/", "heading", "Ranks", 1100, 1300)]
    for name, url, role, title, *heights in views:
        for size, width, height in (("wide", 1600, heights[0]), ("narrow", 400, heights[1])):
            for scheme in ("light", "dark"):
                browser.scheme(scheme)
                browser.size(width, height)
                browser.open("about:blank")
                browser.open(url)
                browser.find(role, title)
                wait_for("news", lambda: "Live" in browser.all("status")[0].text)
                time.sleep(2)  # numbers of its own moment
                taken(browser, f"{PICTURES}/page-{name}-{size}-{scheme}.webp")


def take_tables(browser, operator):
    """Where the page of one job goes on in a narrow window."""
    browser.size(400, 4000)
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        browser.open("about:blank")
        browser.open(f"{operator.url}#/default/mnist")
        browser.find("heading", "Conditions")
        browser.find("heading", "Ranks")
        time.sleep(2)  # charts and all panels have their heights
        top = browser.script("return document.querySelector('.panel[data-key=Ranks]').getBoundingClientRect().top")
        taken(browser, f"{PICTURES}/page-tables-narrow-{scheme}.webp", x=0, y=top - 15, width=400, height=1200)


def take_top(browser, operator, folder):
    program = [f"{world.BUILD}/shoal", "top"]
    text = terminal_picture.watch([*program, "--kubeconfig", operator.kubeconfig], 110, 20, lambda text, _: "gpt2" in text, {})
    terminal_picture.draw(browser, folder, "shoal top", text)
    taken(browser, f"{PICTURES}/terminal-top.webp")


def take_run(browser, folder, flags):
    """The live view of `shoal run`, of two replicas on this machine."""
    container = {"name": "pytorch", "image": "shoal-agent:0.2.0", "args": [flag for flag in flags if not flag.startswith("--nproc")] + ["--threads=1", "--device=cpu", "--dir=kept"]}
    replica = {"replicas": 1, "restartPolicy": "OnFailure", "template": {"spec": {"containers": [container]}}}
    with open(f"{folder}/gpt2.yaml", "w") as file:
        json.dump({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "gpt2"},
                   "spec": {"pytorchReplicaSpecs": {"Master": replica, "Worker": replica}}}, file)
    program = os.path.abspath(f"{world.BUILD}/shoal")
    text = terminal_picture.watch(["sh", "-c", f"cd {folder} && exec {program} run -f gpt2.yaml"], 120, 20,
                                  lambda text, seconds: seconds > SECONDS and "tokens/s" in text, {"OMP_WAIT_POLICY": "passive"})
    terminal_picture.draw(browser, folder, "shoal run -f gpt2.yaml", text)
    taken(browser, f"{PICTURES}/terminal-run.webp")


if __name__ == "__main__":
    main(*sys.argv[1:3])
