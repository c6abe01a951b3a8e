/* A data set of texts or token ids as a user names it: where it is, and what of its rows counts.
 * The configuration has it under these names (data.dataset, ...); this room reads it as it is. */
#ifndef SHOAL_AGENT_DATASET_TOKEN_DATASET_H
#define SHOAL_AGENT_DATASET_TOKEN_DATASET_H

#include <stdbool.h>
#include <stdint.h>

/* X(KIND, NAME, SPELLINGS), with AND between two rows. SPELLINGS: what data.format may say, the
 * first of them NAME. AUTO: by the first bytes. TSV, CSV: rows of columns under a line of names;
 * examples.h reads these. */
/* clang-format off */
#define TOKEN_FORMATS(X, AND) \
    X(AUTO, auto, "auto") AND \
    X(JSONL, jsonl, "jsonl=json=jsonl.gz") AND \
    X(TEXT, text, "text=txt") AND \
    X(LLMC, llmc_bin, "llmc_bin=llmc") AND \
    X(MEGATRON, megatron, "megatron") AND \
    X(ARROW, hf_arrow, "hf_arrow=arrow") AND \
    X(TSV, tsv, "tsv") AND \
    X(CSV, csv, "csv")
/* clang-format on */
enum token_format {
#define TOKENS_COMMA                       ,
#define TOKENS_KIND(kind, name, spellings) TOKENS_##kind
    TOKEN_FORMATS(TOKENS_KIND, TOKENS_COMMA)
#undef TOKENS_KIND
#undef TOKENS_COMMA
};
const char *token_format_name(enum token_format format); /* "jsonl"; NULL: there is none */

enum token_packing {
    /* documents behind one another, cut into windows; what is left of an epoch is dropped. Of arrow
     * folders: the rows as they were packed, longer ones are an error */
    TOKENS_CONCAT,
    TOKENS_PER_DOCUMENT, /* no window has ids of two documents; the last of each is padded */
    TOKENS_NONE,         /* one window per document, the rest of it is dropped */
};

enum token_affix { TOKENS_AFFIX_AUTO, TOKENS_AFFIX_TRUE, TOKENS_AFFIX_FALSE };

/* A number that is an enum is an int64_t, as all numbers of the configuration are. */
struct token_dataset {
    const char *dataset; /* "": none; a file, glob or directory, or an id below root: allenai/c4 */
    const char *dataset_config_name; /* subdirectory; "" or NULL: none */
    const char *root;                /* where ids are looked for */
    bool any_split; /* data that names no split is the one that is asked for; otherwise train */
    int64_t format; /* enum token_format */
    /* Columns of a row. */
    const char *text_column;
    const char *text_pair_column; /* "": there is none */
    const char *target_column, *source_prefix;
    const char *label_column;
    const char *label_names;  /* separated by commas, in the order of the classes; "": numbers */
    int64_t packing;          /* enum token_packing */
    int64_t add_bos, add_eos; /* enum token_affix; of text */
    int64_t shuffle_buffer;   /* rows, of streams; 0: TOKENS_DEFAULT_BUFFER */
};
#endif
