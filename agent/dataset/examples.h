/* A data set of rows, tokenized once and kept in memory, for models that learn rows rather than
 * windows of a stream: sequences to sequences, classes, masked words. Each rank keeps all of it: 4
 * bytes per id that is not cut off, and 24 per row. So any order and any world size take the same
 * samples. Knows files, not models, ranks or devices. */
#ifndef SHOAL_AGENT_DATASET_EXAMPLES_H
#define SHOAL_AGENT_DATASET_EXAMPLES_H

#include "agent/dataset/token_source.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    EXAMPLES_MAX_IDS = INT32_MAX, /* of one split: 8 GiB */
};

enum examples_kind {
    EXAMPLES_TRANSLATION, /* a row: source_prefix and text_column; target_column */
    EXAMPLES_CLASSES,     /* a row: text_column, text_pair_column or none; label_column */
    EXAMPLES_MASKED,      /* a row, or line of plain text, is a document; see packing */
    EXAMPLES_PRETRAINING, /* a row, or paragraph of plain text, is a document, a line of it a
                             sentence; a sample is a sentence that has a next one */
};

struct examples_options {
    enum examples_kind kind;
    /* window, shuffle, seed and strict are not read. packing is for EXAMPLES_MASKED: CONCAT cuts
     * all documents, each in bos and eos, end to end into samples of max_tokens, dropping the rest;
     * PER_DOCUMENT cuts each into parts that have bos and eos; NONE is one sample each. */
    struct token_options data;
    const char *model_names; /* the model's own, which labels may be as well as numbers; or NULL */
    int64_t classes;         /* labels are below */
    int64_t max_source,
        max_target;     /* TRANSLATION: ids, bos and eos included; the rest is cut off */
    int64_t max_tokens; /* the others: of a sample, bos and eos included, >= 4 */
    bool may_cut;       /* the others: longer rows are cut off, else they are an error */
};

/* Ids are behind one another: counts[0] of the first part, counts[1] of the second. */
struct example {
    int64_t begin; /* of `ids` */
    /* TRANSLATION: source, target. CLASSES: bos text eos, then pair eos or none. MASKED: bos text
     * eos, or what was packed. PRETRAINING: a sentence, neither bos nor eos. The second is 0 where
     * there is none. */
    int32_t counts[2];
    int32_t label; /* CLASSES: the class; PRETRAINING: the number of its document */
    int32_t zero;  /* in the place of padding, whose bytes the fingerprint would find undefined */
};

struct examples {
    int64_t count;         /* samples */
    struct example *items; /* [item_count] */
    int64_t item_count;    /* `count`, but for PRETRAINING: sentences */
    int64_t *firsts;       /* PRETRAINING: [count] sentences that have a next one; else NULL */
    int32_t *ids;          /* [id_count] */
    int64_t id_count;
    uint64_t fingerprint; /* of all of it */
    char *name;           /* for people: the split's files */
    const char *format;   /* they are read as: "jsonl" */
};

/* Reads and tokenizes. Errors: ERR_CONFIG, ERR_NOT_FOUND, ERR_UNSUPPORTED as token_source_open;
 * ERR_INPUT naming file and line for the first row that is not right: no such column, wrong JSON,
 * an empty target, an unknown label, more tokens than max_tokens, ids beyond the vocabulary; and
 * for a split without any sample. */
int examples_open(const struct examples_options *options, struct examples **ret_examples,
                  struct error *err);
void examples_close(struct examples *examples); /* NULL-safe */

/* Shortens two texts so that they fit into `room` together: the longer one, or both to halves, as
 * the tokenizers library does it ("longest_first"). */
void examples_cut_pair(int64_t room, int64_t *first, int64_t *second);
#endif
