"""Makes tests/data/language: language models as transformers builds, prints and trains them.

    python3 tests/parity/make_language_fixture.py
"""

import os

from language_models import trees

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "data", "language")


def write_trees():
    for name, model in trees().items():
        with open(os.path.join(OUT, name + ".txt"), "w") as file:
            print(model, file=file)
            for parameter, value in model.named_parameters():
                print(parameter, list(value.shape), file=file)


def main():
    os.makedirs(OUT, exist_ok=True)
    write_trees()


if __name__ == "__main__":
    main()
