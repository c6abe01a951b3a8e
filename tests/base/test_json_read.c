#include "tests/support.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"

#include <string.h>

struct number {
    bool set;
    int64_t value;
};

struct item {
    const char *name;
};

struct part {
    bool present;
    bool flag;
};

struct thing {
    const char *text;
    struct number number;
    int choice;
    struct part part;
    struct item *items;
    size_t item_count;
    const char **texts;
    size_t text_count;
};

static const char *const colours[] = {"", "red", "green", NULL};
static const struct json_field item_fields[] = {JSON_TEXT("name", struct item, name), JSON_END};
static const struct json_field part_fields[] = {JSON_BOOL("flag", struct part, flag), JSON_END};
static const struct json_field fields[] = {
    JSON_TEXT("text", struct thing, text),
    JSON_OPTIONAL("number", struct thing, number, -1, 10),
    JSON_CHOICE("colour", struct thing, choice, colours),
    JSON_OPTIONAL_PART("part", struct thing, part, part.present, part_fields),
    JSON_ARRAY_OF("items", struct thing, items, item_count, struct item, item_fields),
    JSON_TEXTS("texts", struct thing, texts, text_count),
    JSON_KNOWN("known"),
    JSON_UNUSED("unused"),
    JSON_END,
};

struct reading {
    struct arena *arena;
    struct json *json;
    struct lines problems, notes;
    struct thing thing;
};

static void read_with(struct reading *reading, const char *nullable, const char *text)
{
    reading->arena = arena_open();
    lines_init(&reading->problems, reading->arena);
    lines_init(&reading->notes, reading->arena);
    reading->json = json_parse_text(text, JSON_STRICT, NULL);
    assert_non_null(reading->json);
    reading->thing = (struct thing){0};
    struct json_reader reader = {.arena = reading->arena,
                                 .problems = &reading->problems,
                                 .notes = &reading->notes,
                                 .nullable = nullable};
    json_read(&reader, reading->json, fields, &reading->thing);
    assert_string_equal(reader.path, "");
}

static void read_thing(struct reading *reading, const char *text)
{
    read_with(reading, NULL, text);
}

static void done(struct reading *reading)
{
    json_free(reading->json);
    arena_close(reading->arena);
}

static void tables_fill_structs(void **state)
{
    (void)state;
    struct reading r;
    read_thing(&r, "{\"text\":\"a\",\"number\":7,\"colour\":\"green\",\"part\":{\"flag\":true},"
                   "\"items\":[{\"name\":\"x\"},{}],\"texts\":[\"p\",\"q\"],\"known\":[1]}");
    assert_int_equal(r.problems.count + r.notes.count, 0);
    assert_string_equal(r.thing.text, "a");
    assert_true(r.thing.number.set);
    assert_int_equal(r.thing.number.value, 7);
    assert_int_equal(r.thing.choice, 2);
    assert_true(r.thing.part.present && r.thing.part.flag);
    assert_int_equal(r.thing.item_count, 2);
    assert_string_equal(r.thing.items[0].name, "x");
    assert_null(r.thing.items[1].name);
    assert_int_equal(r.thing.text_count, 2);
    assert_string_equal(r.thing.texts[1], "q");
    done(&r);
}

static void null_is_absent(void **state)
{
    (void)state;
    struct reading r;
    read_thing(&r, "{\"text\":null,\"number\":null,\"part\":null,\"items\":null,\"what\":null}");
    assert_int_equal(r.problems.count + r.notes.count, 0);
    assert_null(r.thing.text);
    assert_false(r.thing.number.set || r.thing.part.present);
    done(&r);
}

/* Where null says something, only the fields that are named may be so; what nobody reads may. */
static void null_is_refused(void **state)
{
    (void)state;
    struct reading r;
    read_with(&r, "text numbers",
              "{\"text\":null,\"number\":null,\"part\":{\"flag\":null},\"known\":null,"
              "\"what\":null}");
    assert_string_equal(lines_join(&r.problems),
                        "number: must not be null: give a value, or leave the field out; "
                        "part.flag: must not be null: give a value, or leave the field out");
    done(&r);
}

struct row {
    const char *json;
    const char *problem; /* or note */
};

static const struct row wrong[] = {
    {"{\"text\":5}", "text: must be text (put it in quotes), not the number 5"},
    {"{\"text\":true}", "text: must be text (put it in quotes), not the boolean true"},
    {"{\"text\":[]}", "text: must be text, not a list"},
    {"{\"number\":\"six\"}", "number: must be a whole number, not the text \"six\""},
    {"{\"number\":1.5}", "number: must be a whole number, not the number 1.5"},
    {"{\"number\":18446744073709551616}",
     "number: must be within -1 and 10, not 18446744073709551616"},
    {"{\"number\":1e3}", "number: must be a whole number, not the number 1e3"},
    {"{\"number\":7.0}", "number: must be a whole number, not the number 7.0"},
    {"{\"number\":-2}", "number: must be within -1 and 10, not -2"},
    {"{\"colour\":\"blue\"}",
     "colour: Unsupported value: \"blue\": supported values: \"red\", \"green\""},
    {"{\"colour\":1}", "colour: must be text, not the number 1"},
    {"{\"part\":[]}", "part: must be a mapping, not a list"},
    {"{\"part\":{\"flag\":\"on\"}}", "part.flag: must be true or false, not the text \"on\""},
    {"{\"items\":{}}", "items: must be a list, not a mapping"},
    {"{\"items\":[{},null]}", "items[1]: must be a mapping, not null"},
    {"{\"items\":[{\"name\":{}}]}", "items[0].name: must be text, not a mapping"},
    {"{\"texts\":[\"a\",1]}", "texts[1]: must be text (put it in quotes), not the number 1"},
    {"{\"text\":[1],\"number\":0.5}", "text: must be text, not a list; number: must be a whole "
                                      "number, not the number 0.5"},
    {"{\"colour\":\"a\\nb\"}",
     "colour: Unsupported value: \"a b\": supported values: \"red\", \"green\""},
};

static void problems_name_the_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(wrong); i++) {
        struct reading r;
        read_thing(&r, wrong[i].json);
        assert_string_equal(lines_join(&r.problems), wrong[i].problem);
        assert_int_equal(r.notes.count, 0);
        done(&r);
    }
}

static const struct row dropped[] = {
    {"{\"part\":{\"flog\":1}}", "part.flog: unknown field, ignored; the nearest is flag"},
    {"{\"unused\":1}", "unused: understood, but not enforced here"},
};

static void what_is_dropped_is_noted(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(dropped); i++) {
        struct reading r;
        read_thing(&r, dropped[i].json);
        assert_string_equal(lines_join(&r.notes), dropped[i].problem);
        assert_int_equal(r.problems.count, 0);
        done(&r);
    }
}

static void lists_of_lines_are_capped(void **state)
{
    (void)state;
    struct arena *arena = arena_open();
    struct lines lines;
    lines_init(&lines, arena);
    for (int i = 0; i < LINES_MAX + 3; i++)
        lines_add(&lines, "%d", i);
    assert_int_equal(lines.count, LINES_MAX);
    assert_int_equal(lines.dropped, 3);
    assert_non_null(strstr(lines_join(&lines), "; 63; and 3 more"));
    arena_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_fill_structs),      cmocka_unit_test(null_is_absent),
        cmocka_unit_test(null_is_refused),          cmocka_unit_test(problems_name_the_path),
        cmocka_unit_test(what_is_dropped_is_noted), cmocka_unit_test(lists_of_lines_are_capped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
