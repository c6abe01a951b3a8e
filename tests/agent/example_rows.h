/* Rows of files and what is made of them, as text. The tokenizer's ids are bytes (token_texts.h),
 * so samples are shown as such: '<' is bos, '>' eos, '|' stands between the parts, '#' before a
 * label. */
#ifndef SHOAL_TESTS_AGENT_EXAMPLE_ROWS_H
#define SHOAL_TESTS_AGENT_EXAMPLE_ROWS_H

#include "agent/dataset/examples.h"
#include "base/str.h"

/* What is asked for; what is not said is 0. */
struct example_row {
    enum examples_kind kind;
    const char *file, *content;
    const char *split, *label_names, *pair, *prefix; /* NULL: train, none, none, none */
    const char *model_names;
    enum token_packing packing;
    int64_t max_tokens, max_source, max_target; /* 0: 12, 100, 100 */
    int64_t max_rows;
    bool may_cut;
    enum token_affix add_bos;
};

/* For the data set in `dir`, with 3 classes and the columns text, summary and label. */
struct examples_options example_row_options(const struct example_row *row, const char *dir,
                                            int threads);

/* All samples, a line each. */
void example_row_show(const struct examples *x, enum examples_kind kind, struct str *out);
#endif
