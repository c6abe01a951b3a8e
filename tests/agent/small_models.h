/* Small language models of every kind, as tests/parity/make_language_fixture.py makes them. */
#ifndef SHOAL_TESTS_AGENT_SMALL_MODELS_H
#define SHOAL_TESTS_AGENT_SMALL_MODELS_H

#include "agent/models/architecture.h"

/* family: "Llama", "Mistral", "GPT2", "T5" or the name of a class of BERT's. tied: a Llama has
 * biases then, too; a T5 that is not is of version 1.1. */
struct architecture small_model(const char *family, bool tied);
#endif
