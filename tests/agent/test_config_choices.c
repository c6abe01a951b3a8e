/* What keys are called, and which number each of their choices is. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config_keys.h"
#include "agent/dataset/token_dataset.h"
#include "agent/models/families.h"
#include "agent/models/rope.h"
#include "agent/shard/optim.h"
#include "agent/shard/optim_kind.h"
#include "agent/shard/schedule.h"
#include "agent/shard/shard.h"
#include "agent/telemetry/log_lines.h"
#include "base/log.h"
#include "base/mem.h"

#include <string.h>

static void schedules_have_one_name(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    for (enum schedule_type type = 0; type <= SCHEDULE_WSD; type++) {
        struct config config;
        struct error err;
        enum schedule_type found;
        const char *name = schedule_type_name(type);
        assert_ok(config_line_parse(arena, arena_printf(arena, "--schedule.type %s", name), "",
                                    &config, &err),
                  &err);
        assert_int_equal(config.value.schedule.type, type);
        assert_true(schedule_type_find(name, &found) && found == type);
    }
}

/* Choices are numbered as other headers number them. */
static void choices_are_in_the_order_of_their_enums(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        size_t offset; /* of the field */
        int64_t value;
    } rows[] = {
        {"--scheduler constant", offsetof(struct agent_config, schedule.type), SCHEDULE_CONSTANT},
        {"--scheduler step", offsetof(struct agent_config, schedule.type), SCHEDULE_STEP_LR},
        {"--scheduler linear", offsetof(struct agent_config, schedule.type), SCHEDULE_HF_LINEAR},
        {"--schedule.type linear", offsetof(struct agent_config, schedule.type), SCHEDULE_LINEAR},
        {"--lr_decay_style linear", offsetof(struct agent_config, schedule.type), SCHEDULE_LINEAR},
        {"--scheduler plateau", offsetof(struct agent_config, schedule.type), SCHEDULE_PLATEAU},
        {"--scheduler warmup_linear", offsetof(struct agent_config, schedule.type),
         SCHEDULE_HF_LINEAR},
        {"--scheduler cosine_with_restarts", offsetof(struct agent_config, schedule.type),
         SCHEDULE_HF_COSINE_WITH_RESTARTS},
        {"--scheduler wsd", offsetof(struct agent_config, schedule.type), SCHEDULE_WSD},
        {"--unit step", offsetof(struct agent_config, schedule.unit), SCHEDULE_PER_STEP},
        {"--optim adamw", offsetof(struct agent_config, optimizer.name), 3},
        {"--format jsonl", offsetof(struct agent_config, data.source.format), TOKENS_JSONL},
        {"--format hf_arrow", offsetof(struct agent_config, data.source.format), TOKENS_ARROW},
        {"--register_buffers y", offsetof(struct agent_config, runtime.register_buffers),
         REGISTER_BUFFERS},
        {"--register_buffers n", offsetof(struct agent_config, runtime.register_buffers),
         REGISTER_NOTHING},
        {"--packing none", offsetof(struct agent_config, data.source.packing), TOKENS_NONE},
        {"--add_bos false", offsetof(struct agent_config, data.source.add_bos), TOKENS_AFFIX_FALSE},
        {"--style none", offsetof(struct agent_config, logging.style), STYLE_NONE},
        {"--style fabric", offsetof(struct agent_config, logging.style), STYLE_FABRIC},
        {"--log_level error", offsetof(struct agent_config, logging.level), LOG_ERROR},
        {"--sharding_strategy 5", offsetof(struct agent_config, parallel.strategy),
         HYBRID_SHARD_ZERO2},
        {"--sharding_strategy auto", offsetof(struct agent_config, parallel.strategy),
         STRATEGY_AUTO},
        {"--backward_prefetch BACKWARD_POST",
         offsetof(struct agent_config, parallel.backward_prefetch), BACKWARD_POST},
        {"--rope_type llama3 --factor 8 --low_freq_factor 1 --high_freq_factor 4 "
         "--original_max_position_embeddings 8",
         offsetof(struct agent_config, rope.type), ROPE_LLAMA3},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        int64_t value;
        assert_ok(config_line_parse(arena, rows[i].line, "", &config, &err), &err);
        memcpy(&value, (const char *)&config.value + rows[i].offset, sizeof value);
        assert_int_equal(value, rows[i].value);
    }
}

/* Two keys under one name would make the name useless, and a test of one of them a lie. */
static void no_name_means_two_keys(void **state)
{
    (void)state;
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        auto_arena struct arena *arena = arena_open();
        char *rest = NULL;
        for (char *name = strtok_r(arena_strdup(arena, key->other_names ? key->other_names : ""),
                                   " ", &rest);
             name; name = strtok_r(NULL, " ", &rest)) {
            int index;
            bool known;
            struct error err;
            assert_ok(config_find_key(name, &index, &known, &err), &err);
            assert_int_equal(index, i);
        }
    }
}

/* Each spelling of each choice of each row is its value, and the value is told by the first. */
static void every_choice_is_read_back(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    int choices = 0;
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        assert_int_equal(key->type == TYPE_CHOICE, key->choices != NULL);
        for (const struct config_choice *c = key->choices; c && c->spellings; c++, choices++) {
            char *rest = NULL, *all = arena_strdup(arena, c->spellings), *first = NULL;
            for (char *one = strtok_r(all, "=", &rest); one; one = strtok_r(NULL, "=", &rest)) {
                struct agent_config config = {0};
                struct error err;
                auto_str struct str text;
                str_init(&text, 256);
                first = first ? first : one;
                assert_ok(config_set_value(key, &config, one, arena, &err), &err);
                assert_int_equal(*(int64_t *)((char *)&config + key->offset), c->value);
                config_get_value(key, &config, &text);
                assert_string_equal(str_text(&text), first);
            }
        }
    }
    assert_true(choices > 90);
}

/* Places in tables that are lists of their own. */
/* Of the fields that it reads. */
static void each_optimizer_has_the_defaults_of_its_row(void **state)
{
    (void)state;
    const struct optim_kind *kind;
    for (int i = 0; (kind = optim_kind(i)); i++) {
        struct arena *arena = arena_open();
        struct config config;
        struct error err;
        const char *line = arena_printf(arena, "--optimizer.name %s", kind->name);
        assert_ok(config_line_parse(arena, line, "", &config, &err), &err);
        const struct agent_config *c = &config.value;
        if (kind->uses & OPTIM_USES_BETAS) {
            assert_true(c->optimizer.beta1 == kind->beta1);
            assert_true(c->optimizer.beta2 == kind->beta2);
        }
        if (kind->uses & OPTIM_USES_RHO)
            assert_true(c->optimizer.rho == kind->rho);
        if (kind->uses & OPTIM_USES_EPS)
            assert_true(c->optimizer.eps == kind->eps);
        assert_true(c->optimizer.weight_decay == kind->weight_decay);
        arena_close(arena);
    }
}

static void names_of_tables_lead_to_their_rows(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    for (int i = 0; model_family(i); i++) {
        const char *name = model_family(i)->name;
        assert_ok(config_line_parse(arena, arena_printf(arena, "--model_type %s", name), "",
                                    &config, &err),
                  &err);
        assert_ptr_equal(model_family(config.value.model.type), model_family(i));
    }
    for (int i = 0; optim_kind(i); i++) {
        const char *name = optim_kind(i)->name;
        assert_ok(
            config_line_parse(arena, arena_printf(arena, "--optim %s", name), "", &config, &err),
            &err);
        assert_ptr_equal(optim_kind(config.value.optimizer.name), optim_kind(i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_choice_is_read_back),
        cmocka_unit_test(each_optimizer_has_the_defaults_of_its_row),
        cmocka_unit_test(names_of_tables_lead_to_their_rows),
        cmocka_unit_test(schedules_have_one_name),
        cmocka_unit_test(choices_are_in_the_order_of_their_enums),
        cmocka_unit_test(no_name_means_two_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
