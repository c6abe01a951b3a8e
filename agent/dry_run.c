#include "agent/dry_run.h"

#include "agent/dataset/token_files.h"
#include "agent/notices.h"
#include "agent/plan/run_plan_facts.h"
#include "agent/text/tokenizer.h"
#include "agent/trainer/build.h"
#include "base/log.h"
#include "base/mem.h"

static int add_plan(const struct agent_config *c, const struct model *model, int world_size,
                    int local_size, struct arena *arena, struct str *out, struct error *err)
{
    struct run_plan_facts facts;
    struct run_plan plan;
    if (run_plan_facts_make(c, model, world_size, local_size, arena, &facts, err))
        return -1;
    run_plan_make(&facts, &plan);
    run_plan_print_short(&plan, &facts, build_strategy(c, model), out);
    return 0;
}

/* Data of token ids needs no tokenizer; of data that is not here nobody knows. */
static bool needs_tokenizer(const struct token_files *files)
{
    return files->count == 0 || (files->format != TOKENS_LLMC && files->format != TOKENS_MEGATRON &&
                                 files->format != TOKENS_ARROW);
}

static void add_data(const struct agent_config *c, struct arena *arena,
                     struct token_files *ret_files, struct str *out)
{
    struct token_split split;
    struct error why;
    *ret_files = (struct token_files){0};
    if (token_split_parse(c->data.train_split, 0, &split, &why) ||
        token_files_find(&c->data.source, &split, arena, ret_files, &why)) {
        *ret_files = (struct token_files){0};
        log_warning("the run would fail: %s", why.msg);
        return;
    }
    str_printf(out, "Training data: %d file%s, the first is %s, read as %s\n", ret_files->count,
               ret_files->count == 1 ? "" : "s", ret_files->paths[0],
               token_format_name(ret_files->format));
}

static int add_tokenizer(const struct config *config, const struct model *model,
                         const struct token_files *files, struct str *out, struct error *err)
{
    struct tokenizer *tokenizer;
    if (build_tokenizer(&config->value, model, &tokenizer, err))
        return -1;
    if (tokenizer)
        str_printf(out, "Tokenizer: %d ids\n", (int)tokenizer_vocabulary(tokenizer));
    else if (needs_tokenizer(files))
        log_warning("the run would fail on data of text: there is no tokenizer%s%s; name one by "
                    "data.tokenizer",
                    config->no_tokenizer[0] ? ": " : "", config->no_tokenizer);
    tokenizer_close(tokenizer);
    return 0;
}

int dry_run(const struct config *config, int world_size, int local_size, struct str *out,
            struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    const struct agent_config *c = &config->value;
    struct model *model = NULL;
    notices_log(config);
    if (build_model(c, arena, &model, err))
        return -1;
    build_describe(config, model, out);
    if (add_plan(c, model, world_size, local_size, arena, out, err))
        return -1;
    if (model->language.V == 0) /* images: what is in data.root is opened by the run only */
        return 0;
    struct token_files files;
    add_data(c, arena, &files, out);
    return add_tokenizer(config, model, &files, out, err);
}
