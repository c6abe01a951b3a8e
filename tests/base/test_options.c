#include "tests/support.h"

#include "base/mem.h"
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct values {
    bool flag;
    const char *text;
    struct option_list list;
    int64_t number;
    int choice;
};

static const char *const colors[] = {"red", "green", NULL};

/* Parses the words, of which there are as many as are not NULL. */
static int parse(struct values *v, char *const *words, struct error *err)
{
    const struct option_row rows[] = {
        {"verbose", 'v', OPTION_FLAG, &v->flag, NULL, "say more", 0, 0, NULL},
        {"name", 0, OPTION_TEXT, &v->text, "NAME", "a name", 0, 0, NULL},
        {"file", 'f', OPTION_LIST, &v->list, "FILE", "a file", 0, 0, NULL},
        {"tries", 0, OPTION_NUMBER, &v->number, "N", "how often", -1, 9, NULL},
        {"color", 0, OPTION_CHOICE, &v->choice, "COLOR", "which", 0, 0, colors},
        {.name = NULL},
    };
    int count = 0;
    while (words[count])
        count++;
    return options_parse(rows, count, words, err);
}

static void values_come_in_every_form(void **state)
{
    (void)state;
    char *words[] = {"--verbose", "--name=a", "-f",  "x",      "--file", "y",
                     "-tries=-1", "--name",   "b=c", "-color", "green",  NULL};
    struct values v = {0};
    struct error err;
    assert_ok(parse(&v, words, &err), &err);
    assert_true(v.flag);
    assert_string_equal(v.text, "b=c");
    assert_int_equal(v.list.count, 2);
    assert_string_equal(v.list.items[1], "y");
    assert_int_equal(v.number, -1);
    assert_int_equal(v.choice, 1);
}

static void arguments_are_no_options(void **state)
{
    (void)state;
    struct option_arguments files = {0};
    bool verbose = false;
    const char *text = NULL;
    const struct option_row rows[] = {
        {"verbose", 'v', OPTION_FLAG, &verbose, NULL, "say more", 0, 0, NULL},
        {"FILE", 0, OPTION_ARGUMENTS, &files, NULL, "a file", 0, 0, NULL},
        {"longer-than-the-column", 0, OPTION_TEXT, &text, "VALUE", "a text", 0, 0, NULL},
        {.name = NULL},
    };
    struct error err;
    char *words[] = {"a=b", "-v", "-", "FILE"};
    assert_ok(options_parse(rows, 4, words, &err), &err);
    assert_true(verbose);
    assert_int_equal(files.count, 3);
    assert_string_equal(files.items[0], "a=b");
    assert_string_equal(files.items[1], "-");
    assert_string_equal(files.items[2], "FILE");
    assert_fails(options_parse(rows, 1, (char *[]){"--FILE"}, &err), &err, ERR_CONFIG,
                 "unknown option --FILE; there are --verbose");
    char *many[1024]; /* C4's files */
    for (size_t i = 0; i < array_length(many); i++)
        many[i] = "x";
    assert_ok(options_parse(rows, array_length(many), many, &err), &err);
    assert_int_equal(files.count, 3 + array_length(many));
    assert_string_equal(files.items[3 + array_length(many) - 1], "x");
    free(files.items);
    auto_str struct str help;
    str_init(&help, 1024);
    options_help(rows, &help);
    assert_string_equal(str_text(&help), "  -v, --verbose                    say more\n"
                                         "      FILE                         a file\n"
                                         "      --longer-than-the-column VALUE\n"
                                         "                                   a text\n");
}

static void a_flag_may_say_true_or_false(void **state)
{
    (void)state;
    struct values v = {.flag = true};
    struct error err;
    assert_ok(parse(&v, (char *[]){"--verbose=false", NULL}, &err), &err);
    assert_false(v.flag);
    assert_ok(parse(&v, (char *[]){"-verbose=true", NULL}, &err), &err);
    assert_true(v.flag);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        char *words[3];
        const char *text;
    } rows[] = {
        {{"--nam", "x"},
         "unknown option --nam (the nearest is --name); there are --verbose --name"},
        {{"--names=x"}, "unknown option --names=x"},
        {{"x"}, "unknown argument x"},
        {{"--name"}, "--name needs a value: NAME"},
        {{"--tries", "10"}, "--tries 10: must be a whole number from -1 to 9"},
        {{"--tries="}, "--tries : must be a whole number"},
        {{"--color=blue"}, "--color blue: must be one of red green"},
        {{"--verbose=maybe"}, "--verbose=maybe: must be true or false"},
        {{"-"}, "unknown option -"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct values v = {0};
        struct error err;
        assert_fails(parse(&v, rows[i].words, &err), &err, ERR_CONFIG, rows[i].text);
    }
}

/* Of 17 options, one more than a message shows; `last` is one. */
static int parse_many(const char *last, char *word, struct error *err)
{
    enum { COUNT = 17 };
    bool flags[COUNT];
    char names[COUNT][8];
    struct option_row rows[COUNT + 1] = {0};
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "flag%c", 'a' + i);
        rows[i] = (struct option_row){.name = names[i], .target = &flags[i], .help = "a flag"};
    }
    rows[COUNT - 1].name = last;
    return options_parse(rows, 1, &word, err);
}

static void many_options_are_the_helps(void **state)
{
    (void)state;
    struct error err;
    assert_fails(parse_many("help", "--flagz", &err), &err, ERR_CONFIG,
                 "unknown option --flagz (the nearest is --flaga); --help lists all options");
    assert_null(strstr(err.msg, "--flagb"));
    assert_fails(parse_many("help", "x", &err), &err, ERR_CONFIG,
                 "unknown argument x; --help lists all options");
    /* where there is no such option, none is promised */
    assert_fails(parse_many("helper", "--flagz", &err), &err, ERR_CONFIG,
                 "; there are --flaga --flagb ");
    assert_non_null(strstr(err.msg, " --helper"));
    assert_null(strstr(err.msg, "lists all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_in_every_form),    cmocka_unit_test(arguments_are_no_options),
        cmocka_unit_test(a_flag_may_say_true_or_false), cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(many_options_are_the_helps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
