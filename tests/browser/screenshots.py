"""Takes the pictures of docs/page.md: `tests/browser/screenshots.py FOLDER IMAGES` (make screenshots).

Three trainings of this machine stand in the place of pods; the finished jobs beside them are those of the tests.
"""
import random
import struct
import sys
import time

import kubernetes
import world
from webdriver import Browser, wait_for

PICTURES = "docs/pictures"
SECONDS = 45  # of training before the first picture
TOKENS = 1 << 16


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
    finally:
        operator.close()
        for agent in agents.values():
            agent.close()
        cluster.close()


def take(browser, operator, agents):
    views = [("page-jobs-light", operator.url, 1600, 800, "light", "table", "Jobs"),
             ("page-job-dark", f"{operator.url}#/default/mnist", 1600, 1600, "dark", "heading", "Ranks"),
             ("page-jobs-narrow-dark", operator.url, 400, 900, "dark", "table", "Jobs"),
             ("page-job-narrow-light", f"{operator.url}#/default/gpt2", 400, 1300, "light", "heading", "Ranks"),
             ("page-run-light", f"http://127.0.0.1:{agents['mnist'].port}/", 1600, 1100, "light", "heading", "Ranks")]
    for name, url, width, height, scheme, role, title in views:
        browser.scheme(scheme)
        browser.size(width, height)
        browser.open("about:blank")
        browser.open(url)
        browser.find(role, title)
        wait_for("news", lambda: "Live" in browser.all("status")[0].text)
        time.sleep(2)  # numbers of its own moment
        browser.picture(f"{PICTURES}/{name}.webp")
        print(f"{PICTURES}/{name}.webp")


if __name__ == "__main__":
    main(*sys.argv[1:3])
