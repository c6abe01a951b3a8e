"""Makes small tokenized data sets with the programs that users make theirs with, in tests/data/tokens/:
folders of Hugging Face's `datasets`, pairs of Megatron's builder. llm.c's files follow its data_common.py.

    pip install datasets numpy megatron-core torch
    python3 tests/parity/make_tokens_fixture.py

Id p of document d is (d * 131 + p * 17 + 5) % 997 everywhere, so that a test knows what it must read.
"""

import os
import shutil

import numpy as np

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "tokens")


def ids_of(document, count):
    return [(document * 131 + p * 17 + 5) % 997 for p in range(count)]


def rows(lengths, first=0):
    """Labels as the ids; of row 1 the first three ids are a prompt, and row 2 has two places of padding."""
    ids = [ids_of(first + i, n) for i, n in enumerate(lengths)]
    labels = [list(row) for row in ids]
    mask = [[1] * n for n in lengths]
    for i, n in enumerate(lengths):
        if first + i == 1:
            labels[i][:3] = [-100] * min(3, n)
        if first + i == 2:
            mask[i][-2:] = [0, 0]
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def make_arrow():
    import datasets
    from datasets import Features, LargeList, List, Value

    datasets.disable_progress_bars()
    train, valid = rows([8, 8, 8, 5, 8, 8, 2]), rows([8, 8], first=7)
    plain = datasets.DatasetDict(
        {"train": datasets.Dataset.from_dict(train), "valid": datasets.Dataset.from_dict(valid)}
    )
    plain.save_to_disk(os.path.join(OUT, "arrow"), num_shards={"train": 2, "valid": 1})

    # other widths, offsets of 64 bits, columns in front that must be passed over, and no mask
    wide = {"text": ["a", "bc", "déf"], "meta": [{"n": 1, "tags": ["x"]}, {"n": 2, "tags": []}, {"n": 3, "tags": ["y", "z"]}]}
    wide["labels"] = [ids_of(d, n) for d, n in enumerate([4, 9, 6])]
    wide["input_ids"] = wide["labels"]
    features = Features(
        {
            "text": Value("string"),
            "meta": {"n": Value("int64"), "tags": List(Value("string"))},
            "labels": List(Value("int16")),
            "input_ids": LargeList(Value("uint16")),
        }
    )
    one = datasets.Dataset.from_dict(wide, features=features)
    one.save_to_disk(os.path.join(OUT, "arrow_wide"))
    one.remove_columns(["labels"]).save_to_disk(os.path.join(OUT, "arrow_no_labels"))

    # what is refused: rows whose columns differ in length, padding in front, nulls, no list at all
    row = ids_of(0, 4)
    for name, columns in [
        ("arrow_uneven", {"input_ids": [row, row], "labels": [row, row[:3]]}),
        ("arrow_left", {"input_ids": [row], "labels": [row], "attention_mask": [[0, 1, 1, 1]]}),
        ("arrow_null", {"input_ids": [row, None], "labels": [row, row]}),
        ("arrow_text", {"input_ids": ["a"], "labels": [row]}),
        ("arrow_float", {"input_ids": [[0.5]], "labels": [row]}),
    ]:
        datasets.Dataset.from_dict(columns).save_to_disk(os.path.join(OUT, name))


def make_megatron():
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    for name, dtype, lengths in [("megatron_i32", np.int32, [5, 1, 0, 12, 7]), ("megatron_u16", np.uint16, [9, 20])]:
        path = os.path.join(OUT, name)
        builder = IndexedDatasetBuilder(path + ".bin", dtype=dtype)
        for document, count in enumerate(lengths):
            builder.add_item(torch.tensor(ids_of(document, count), dtype=torch.int64))
            builder.end_document()
        builder.finalize(path + ".idx")


def make_llmc():
    """Two shards of 16 bits (GPT-2) and one of 32 (Llama 3)."""
    cases = [
        ("words_train_000000.bin", 20240520, 1, np.uint16, 0, 20),
        ("words_train_000001.bin", 20240520, 1, np.uint16, 1, 15),
        ("words_val_000000.bin", 20240801, 7, np.uint32, 2, 9),
    ]
    os.makedirs(os.path.join(OUT, "llmc"))
    for name, magic, version, dtype, document, count in cases:
        header = np.zeros(256, dtype=np.int32)
        header[:3] = magic, version, count
        with open(os.path.join(OUT, "llmc", name), "wb") as file:
            file.write(header.tobytes())
            file.write(np.array(ids_of(document, count), dtype=dtype).tobytes())


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    make_arrow()
    make_megatron()
    make_llmc()
