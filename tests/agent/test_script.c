/* Scripts that a preset stands in for: each is told, and so is what one that is there does
 * otherwise: the tutorial's own, as its document has it and with the edits that the document goes
 * on to. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/compat/script.h"
#include "agent/config/config.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TUTORIAL "tests/data/tutorial/FSDP_mnist.py"
#define FSDP     "--preset mnist-fsdp --runtime.script /w/FSDP_mnist.py"

/* The document's own line, and what it makes of it in its later sections. */
#define PLAIN "    model = FSDP(model)\n"
#define WRAPPED                                                                                    \
    "    model = FSDP(model,\n"                                                                    \
    "        fsdp_auto_wrap_policy=my_auto_wrap_policy)\n"
#define OFFLOADED                                                                                  \
    "    model = FSDP(model,\n"                                                                    \
    "        fsdp_auto_wrap_policy=my_auto_wrap_policy,\n"                                         \
    "        cpu_offload=CPUOffload(offload_params=True))\n"

static const char *replaced(struct arena *arena, const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    assert_non_null(at);
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
}

static void parse(struct config *config, struct arena *arena, const char *line)
{
    struct error err;
    assert_ok(config_line_parse(arena, line, "", config, &err), &err);
}

static const char policy_unread[] =
    "FSDP_mnist.py has fsdp_auto_wrap_policy=my_auto_wrap_policy, which is not read: say "
    "--auto_wrap_policy SIZE_BASED_WRAP --min_num_params 100\n";
static const char offload_unread[] =
    "FSDP_mnist.py has cpu_offload=CPUOffload(offload_params=True), "
    "which is not read: say --cpu_offload\n";
static const struct {
    const char *old, *new; /* in the document's script; NULL: as it is */
    const char *line, *headline;
} edits[] = {
    {NULL, NULL, FSDP, ""},
    {PLAIN, WRAPPED, FSDP, policy_unread},
    {PLAIN, OFFLOADED, FSDP, "BOTH"},
    {PLAIN, OFFLOADED, FSDP " --auto_wrap_policy SIZE_BASED_WRAP", offload_unread},
    {PLAIN, OFFLOADED, FSDP " --auto_wrap_policy SIZE_BASED_WRAP --cpu_offload", ""},
    {PLAIN, "    # model = FSDP(model, cpu_offload=CPUOffload(offload_params=True))\n" PLAIN, FSDP,
     ""},
    {PLAIN, "    print('FSDP(model, forward_prefetch=True)')\n" PLAIN, FSDP, ""},
    {PLAIN,
     "    model = FSDP(model, sharding_strategy = ShardingStrategy.SHARD_GRAD_OP, "
     "backward_prefetch=BackwardPrefetch.BACKWARD_PRE, forward_prefetch=True)\n",
     FSDP " --forward_prefetch=false",
     "FSDP_mnist.py has sharding_strategy=ShardingStrategy.SHARD_GRAD_OP, which is not read: "
     "say --sharding_strategy SHARD_GRAD_OP\n"
     "FSDP_mnist.py has forward_prefetch=True, which is not read: say --forward_prefetch\n"},
    {PLAIN, "    model = FSDP(model, mixed_precision=MixedPrecision(param_dtype=bf))\n", FSDP,
     "FSDP_mnist.py has mixed_precision=MixedPrecision(param_dtype=bf), which is not read: say "
     "--mixed_precision bf16\n"},
    {PLAIN,
     "    model = FSDP(model, auto_wrap_policy=None, cpu_offload=CPUOffload(offload_params="
     "args.off), sharding_strategy=chosen, mixed_precision=policy)\n",
     FSDP,
     "FSDP_mnist.py has cpu_offload=CPUOffload(offload_params=args.off) in line 147, and its "
     "value is not known, as the script is not run: say --cpu_offload\n"
     "FSDP_mnist.py has sharding_strategy=chosen in line 147, and its value is not known, as "
     "the script is not run: say --sharding_strategy\n"
     "FSDP_mnist.py has mixed_precision=policy in line 147, and its value is not known, as the "
     "script is not run: say --mixed_precision\n"},
    {PLAIN, "    '''two\n    lines'''\n    model = FSDP(model,\n        **options)\n", FSDP,
     "FSDP_mnist.py has FSDP(**options) in line 150, and its value is not known, as the script "
     "is not run: say by flags what it passes (--sharding_strategy, --auto_wrap_policy, "
     "--cpu_offload, --mixed_precision)\n"},
    {PLAIN,
     "    chosen = ShardingStrategy.NO_SHARD\n    off = None\n    half = MixedPrecision(bf)\n"
     "    model = FSDP(model, sharding_strategy=chosen, cpu_offload=off, mixed_precision=half, "
     "limit_all_gathers=False)\n",
     FSDP,
     "FSDP_mnist.py has sharding_strategy=ShardingStrategy.NO_SHARD, which is not read: say "
     "--sharding_strategy NO_SHARD\n"
     "FSDP_mnist.py has limit_all_gathers=False, which is not read: say --limit_all_gathers "
     "false\n"
     "FSDP_mnist.py has mixed_precision=MixedPrecision(bf), which is not read: say "
     "--mixed_precision bf16\n"},
    {PLAIN, "    model = FSDP(model, sharding_strategy=chosen, cpu_offload=off)\n",
     FSDP " --sharding_strategy FULL_SHARD --cpu_offload=false", ""},
    {"dataset1 = datasets.MNIST(", "dataset1 = datasets.FashionMNIST(", FSDP,
     "FSDP_mnist.py has FashionMNIST, which is not read: say --data.root DIR/FashionMNIST/raw, "
     "its files\n"},
    {"dataset1 = datasets.MNIST(", "dataset1 = datasets.FashionMNIST(", FSDP " --data.root d", ""},
    {"'--epochs', type=int, default=10", "'--epochs', type=int, default=14", FSDP,
     "FSDP_mnist.py has 14 as the default of --epochs, which is not read: say --epochs 14\n"},
    {"'--epochs', type=int, default=10", "'--epochs', type=int, default=14", FSDP " --epochs 3",
     ""},
    {"'--batch-size', type=int, default=64", "\"--batch-size\", default = 9, type=int", FSDP, ""},
    {"'--lr', type=float, default=1.0", "'--lr', type=float, default=0.1", FSDP,
     "FSDP_mnist.py has 0.1 as the default of --lr, which is not read: say --lr 0.1\n"},
    {"nn.Linear(9216, 128)", "nn.Linear(9216, 256)", FSDP,
     "FSDP_mnist.py has no nn.Linear(9216,128): it is not the script that preset mnist-fsdp "
     "stands for, and what it would train is not trained\n"},
    {PLAIN, "    model = DDP(model)\n", FSDP,
     "FSDP_mnist.py has no FSDP(: it is not the script that preset mnist-fsdp stands for, and "
     "what it would train is not trained\n"},
    {NULL, NULL, "--preset hyperpod --runtime.script train.py",
     "train.py has no model_utils: it is not the script that preset hyperpod stands for, and "
     "what it would train is not trained\n"},
    {NULL, NULL, "--preset accelerate,trainer --runtime.script my.py --model_name m --dir c",
     "my.py has no Trainer(: it is not the script that preset trainer stands for, and what it "
     "would train is not trained\n"},
};

static void edits_of_a_script_are_told(void **state)
{
    (void)state;
    auto_free char *text = NULL;
    size_t bytes = 0;
    struct error err;
    assert_ok(file_read(TUTORIAL, 1 << 20, &text, &bytes, &err), &err);
    for (size_t i = 0; i < array_length(edits); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        const char *script =
            edits[i].old ? replaced(arena, text, edits[i].old, edits[i].new) : text;
        const char *expected = strcmp(edits[i].headline, "BOTH") == 0
                                   ? arena_printf(arena, "%s%s", policy_unread, offload_unread)
                                   : edits[i].headline;
        parse(&config, arena, edits[i].line);
        assert_ok(script_compare(&config, script, arena, &err), &err);
        assert_string_equal(config.headline, expected);
    }
}

/* What AWS's train.py passes follows from its own flags, which are read. */
static void a_script_whose_flags_are_read_may_have_variables(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    parse(&config, arena, "--preset hyperpod --runtime.script train.py");
    assert_ok(script_compare(&config,
                             "import model_utils\nm = FSDP(m, sharding_strategy=chosen, "
                             "cpu_offload=offload, **more)\n",
                             arena, &err),
              &err);
    assert_string_equal(config.headline, "");
}

static void other_data_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"x\nd = datasets.CIFAR10('../data')\n",
         "FSDP_mnist.py has CIFAR10 in line 2, and is not run: preset mnist-fsdp trains MNIST, or "
         "files of its format; to train that, say --preset mnist-fsdp in place of the script"},
        {"torchvision.datasets.Places365('../data')\n", "FSDP_mnist.py has Places365 in line 1, "},
        {"'''\n\n'''\nd = CIFAR100(root)\n", "FSDP_mnist.py has CIFAR100 in line 4, "},
        {"d = datasets.load_dataset('mnist')\n", "FSDP_mnist.py has load_dataset in line 1, "},
        {"# datasets.CIFAR10(x)\nd = MNIST(root)\nx = datasets.CIFAR10_CLASSES\n", NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        parse(&config, arena, FSDP);
        int result = script_compare(&config, rows[i].text, arena, &err);
        if (rows[i].message)
            assert_fails(result, &err, ERR_CONFIG, rows[i].message);
        else
            assert_ok(result, &err);
    }
}

/* Reading a FIFO waits for its writer. */
static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *directory = support_temp_dir();
    const char *path = arena_printf(arena, "%s/FSDP_mnist.py", directory);
    struct config config;
    struct error err;
    assert_int_equal(mkfifo(path, 0600), 0);
    parse(&config, arena, arena_printf(arena, "--preset mnist-fsdp --runtime.script %s", path));
    assert_fails(script_check(&config, arena, &err), &err, ERR_CONFIG,
                 "/FSDP_mnist.py is not a regular file: it is no script");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_fails(script_check(&config, arena, &err), &err, ERR_CONFIG,
                 "/FSDP_mnist.py is a directory: it is no script");
    support_remove_tree(directory);
}

/* Whatever a file has, it is read to its end and no further. */
static void no_text_is_too_odd(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "FSDP(",
                                        "FSDP(a=(",
                                        "'",
                                        "'''",
                                        "\"\\",
                                        "# FSDP(",
                                        "FSDP(cpu_offload=",
                                        "x = ')' FSDP(]]])",
                                        "FSDP(,,,=,)"};
    for (size_t i = 0; i < array_length(texts); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        parse(&config, arena, FSDP);
        struct error err;
        assert_ok(script_compare(&config, texts[i], arena, &err), &err);
        assert_non_null(strstr(config.headline, "FSDP_mnist.py has no nn.Conv2d(1,32,3,1): "));
    }
}

/* Any script under accelerate is taken for one of Trainer's, whose own numbers are not known. */
static void a_script_of_trainers_is_told_by_its_numbers(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    const char *line = "--preset accelerate,trainer --runtime.script my.py --model_name m --dir c";
    parse(&config, arena, line);
    struct error err;
    assert_ok(script_compare(&config, "SFTTrainer(model)\n", arena, &err), &err);
    assert_string_equal(config.headline, "");
    assert_ok(script_compare(&config,
                             "p.add_argument('--learning_rate', default=5e-5)\n"
                             "p.add_argument('--warmup_steps', default=9)\nSFTTrainer(model)\n",
                             arena, &err),
              &err);
    assert_string_equal(config.headline, "my.py has 9 as the default of --warmup_steps, which is "
                                         "not read: say --warmup_steps 9\n");
}

/* As long as one may be, of short lines: a copy of the text for each of them would be gigabytes. */
static void a_long_script_is_read_to_its_end(void **state)
{
    (void)state;
    enum { BYTES = 1000 * 1000 };
    auto_arena struct arena *arena = arena_open();
    auto_str struct str text;
    struct config config;
    str_init(&text, 2 * BYTES);
    while (text.length < BYTES)
        str_add(&text, "x = 1\n # y\n");
    str_add(&text, "Trainer(model)\np.add_argument('--warmup_steps', default=9)\n");
    parse(&config, arena,
          "--preset accelerate,trainer --runtime.script my.py --model_name m --dir c");
    struct error err;
    assert_ok(script_compare(&config, str_text(&text), arena, &err), &err);
    assert_non_null(strstr(config.headline, "my.py has 9 as the default of --warmup_steps"));
}

static void a_script_that_cannot_be_read_is_told(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *directory = support_temp_dir();
    const char *path = arena_printf(arena, "%s/train.py", directory);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, 2 << 20), 0); /* larger than any script */
    close(fd);
    struct config config;
    struct error err;
    parse(&config, arena, arena_printf(arena, "--preset hyperpod --runtime.script %s", path));
    assert_ok(script_check(&config, arena, &err), &err);
    assert_null(strstr(config.script_notice, "no such file"));
    assert_non_null(strstr(config.headline, "train.py"));
    assert_non_null(strstr(config.headline, "its settings are not compared"));
    support_remove_tree(directory);
}

static void who_stands_in_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *line, *script_notice;
    } rows[] = {
        {"--preset mnist-fsdp --runtime.script " TUTORIAL, TUTORIAL
         " is not run: preset mnist-fsdp stands in for it (the tutorial's "
         "FSDP_mnist.py: MNIST's network, Adadelta, StepLR; another name of preset mnist)"},
        {"--preset hyperpod --runtime.script /nonexistent/train.py",
         "/nonexistent/train.py (there is no such file here) is not run: preset hyperpod stands in for it "
         "(train.py of AWS's FSDP sample: a Llama, AdamW, cosine, bf16, its log lines)"},
        {"--preset accelerate --preset trainer --runtime.script my.py --model_name m --dir c",
         "my.py (there is no such file here) is not run: preset trainer stands in for it (the "
         "defaults of Transformers' Trainer: batches of 8, 3 epochs, AdamW without weight decay, "
         "5e-5 falling linearly, gradients clipped to 1, no evaluation, checkpoints each 500 "
         "steps)"},
        {"--preset mnist", ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        parse(&config, arena, rows[i].line);
        struct error err;
        assert_ok(script_check(&config, arena, &err), &err);
        assert_string_equal(config.script_notice, rows[i].script_notice);
        assert_string_equal(config.headline, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_of_a_script_are_told),
        cmocka_unit_test(a_script_whose_flags_are_read_may_have_variables),
        cmocka_unit_test(other_data_is_an_error),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(no_text_is_too_odd),
        cmocka_unit_test(a_script_of_trainers_is_told_by_its_numbers),
        cmocka_unit_test(a_long_script_is_read_to_its_end),
        cmocka_unit_test(a_script_that_cannot_be_read_is_told),
        cmocka_unit_test(who_stands_in_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
