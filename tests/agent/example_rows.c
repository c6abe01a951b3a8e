#include "tests/agent/example_rows.h"

#include "tests/agent/token_texts.h"

struct examples_options example_row_options(const struct example_row *row, const char *dir,
                                            int threads)
{
    struct token_options data = texts_options(dir, 0);
    data.split = row->split ? row->split : "train";
    data.max_rows = row->max_rows;
    data.source.packing = row->packing;
    data.threads = threads;
    data.source.add_bos = row->add_bos;
    data.encoder.adds_eos = true;
    data.source.target_column = "summary";
    data.source.source_prefix = row->prefix ? row->prefix : "";
    data.source.text_pair_column = row->pair ? row->pair : "";
    data.source.label_column = "label";
    data.source.label_names = row->label_names ? row->label_names : "";
    return (struct examples_options){
        .kind = row->kind,
        .data = data,
        .model_names = row->model_names,
        .classes = 3,
        .max_source = row->max_source ? row->max_source : 100,
        .max_target = row->max_target ? row->max_target : 100,
        .max_tokens = row->max_tokens ? row->max_tokens : 12,
        .may_cut = row->may_cut,
    };
}

static void show_ids(const int32_t *ids, int64_t count, struct str *out)
{
    for (int64_t i = 0; i < count; i++) {
        char c = ids[i] == TEXTS_BOS ? '<' : ids[i] == TEXTS_EOS ? '>' : (char)(ids[i] - 3);
        str_add_bytes(out, &c, 1);
    }
}

void example_row_show(const struct examples *x, enum examples_kind kind, struct str *out)
{
    bool labels = kind == EXAMPLES_CLASSES || kind == EXAMPLES_PRETRAINING;
    for (int64_t i = 0; i < x->item_count; i++) {
        const struct example *item = &x->items[i];
        if (i > 0)
            str_add(out, "\n");
        show_ids(x->ids + item->begin, item->counts[0], out);
        if (item->counts[1] > 0)
            str_add(out, "|");
        show_ids(x->ids + item->begin + item->counts[0], item->counts[1], out);
        if (labels)
            str_printf(out, "#%d", item->label);
    }
}
