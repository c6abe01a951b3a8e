#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *yaml;
    const char *json; /* of the array of documents, compact */
};

static const struct row good[] = {
    {"a: 1", "[{\"a\":1}]"},
    {"", "[]"},
    {"# nothing\n---\n---\n", "[]"},
    {"a\n---\nb\n...\n---\nc", "[\"a\",\"b\",\"c\"]"},
    {"{\"a\": [1, 2.5, true, null, \"x\\ty\"]}", "[{\"a\":[1,2.5,true,null,\"x\\ty\"]}]"},
    /* scalars: YAML 1.1 as Kubernetes' tools read it */
    {"[yes, No, on, OFF, y, N, true, False]", "[[true,false,true,false,true,false,true,false]]"},
    {"['yes', \"on\", !!str 5]", "[[\"yes\",\"on\",\"5\"]]"},
    {"[~, null, NULL, 'null']", "[[null,null,null,\"null\"]]"},
    {"[0, -1, +2, 0x10, 0b101, 010, 0o17, 1_000]", "[[0,-1,2,16,5,8,15,1000]]"},
    {"[9223372036854775807, -9223372036854775808]", "[[9223372036854775807,-9223372036854775808]]"},
    {"[1.5, -.5, 2., 1e3, 09]", "[[1.5,-0.5,2.0,1000.0,9.0]]"},
    {"[1.2.3, 1:30, 2026-01-31, 0x, '-', 1e, _, .]",
     "[[\"1.2.3\",\"1:30\",\"2026-01-31\",\"0x\",\"-\",\"1e\",\"_\",\".\"]]"},
    {"[!!int '3', !!float 3, !!bool 'on', !!null '']", "[[3,3,true,null]]"},
    {"{8080: a, on: b, 0x10: c}", "[{\"8080\":\"a\",\"true\":\"b\",\"16\":\"c\"}]"},
    {"a: |\n  x\n  y\nb: >-\n  x\n  y\n", "[{\"a\":\"x\\ny\\n\",\"b\":\"x y\"}]"},
    /* anchors, aliases, merges */
    {"a: &x [1]\nb: *x\n", "[{\"a\":[1],\"b\":[1]}]"},
    {"a: &x 1\nb: &x 2\nc: *x\n", "[{\"a\":1,\"b\":2,\"c\":2}]"},
    {"a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}\n",
     "[{\"a\":{\"k\":1,\"l\":2},\"b\":{\"l\":3,\"k\":1}}]"},
    {"- &a {k: 1}\n- &b {k: 2, m: 3}\n- {<<: [*a, *b]}\n",
     "[[{\"k\":1},{\"k\":2,\"m\":3},{\"k\":1,\"m\":3}]]"},
    {"{'<<': 1}", "[{\"<<\":1}]"},
};

static void texts_become_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(good); i++) {
        json_t *documents = NULL;
        struct error err;
        assert_ok(yaml_parse(good[i].yaml, strlen(good[i].yaml), "t.yaml", &documents, &err), &err);
        auto_free char *json = json_dumps(documents, JSON_COMPACT);
        assert_string_equal(json, good[i].json);
        json_decref(documents);
    }
}

struct bad_row {
    const char *yaml;
    const char *message;
};

static const struct bad_row bad[] = {
    {"a: [1,\nb: 2", "t.yaml:3:1: while parsing a flow sequence"},
    {"a: 1\n\tb: 2", "t.yaml:2:1: "},
    {"a: 1\nb: 2\na: 3\n", "t.yaml:3:1: this key is there twice: a"},
    {"{on: 1, 'true': 2}", "t.yaml:1:9: this key is there twice: true"},
    {"a: *x", "t.yaml:1:4: unknown alias: x"},
    {"a: &x 1\n---\nb: *x", "t.yaml:3:4: unknown alias: x"},
    {"&x [*x]", "an alias within the value it stands for: x"},
    {"{[1]: 2}", "t.yaml:1:2: a key must be text"},
    {"{~: 2}", "t.yaml:1:2: a key must be text"},
    {"{1.5: 2}", "t.yaml:1:2: a key must be text"},
    {"!!int abc", "t.yaml:1:1: a value that does not fit its tag: tag:yaml.org,2002:int"},
    {"!custom 1", "a value that does not fit its tag: !custom"},
    {"\"a\\0b\"", "t.yaml:1:1: not text"},
    {"a: \xff", "t.yaml: byte 3: "},
    {"{<<: 1}", "<< takes a mapping or a list of mappings"},
};

static void faults_name_line_and_column(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(bad); i++) {
        json_t *documents = NULL;
        struct error err;
        int result = yaml_parse(bad[i].yaml, strlen(bad[i].yaml), "t.yaml", &documents, &err);
        assert_fails(result, &err, ERR_INPUT, bad[i].message);
        assert_null(documents);
    }
}

static void assert_too_much(struct str *text, const char *message)
{
    json_t *documents = NULL;
    struct error err;
    int result = yaml_parse(str_text(text), text->length, "t", &documents, &err);
    assert_fails(result, &err, ERR_INPUT, message);
    str_free(text);
}

static void limits_hold(void **state)
{
    (void)state;
    struct str text;
    str_init(&text, YAML_MAX_BYTES + 2);
    for (int i = 0; i <= YAML_MAX_DEPTH; i++)
        str_add(&text, "[");
    assert_too_much(&text, "nested too deep");

    /* a billion laughs: nine levels, each nine times the one below */
    str_add(&text, "a0: &a0 lol\n");
    for (int i = 1; i < 10; i++) {
        str_printf(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 9; k++)
            str_printf(&text, "%s*a%d", k ? "," : "", i - 1);
        str_add(&text, "]\n");
    }
    assert_too_much(&text, "too much: the limit is 200000 values");

    for (int i = 0; i <= YAML_MAX_DOCUMENTS; i++)
        str_add(&text, "--- 1\n");
    assert_too_much(&text, "too many documents");

    for (int i = 0; i <= YAML_MAX_ANCHORS; i++)
        str_add(&text, "- &x 1\n");
    assert_too_much(&text, "too many anchors");

    while (text.length <= YAML_MAX_BYTES)
        str_add(&text, "                                                                ");
    assert_too_much(&text, "bytes are too much");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_values),
        cmocka_unit_test(faults_name_line_and_column),
        cmocka_unit_test(limits_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
