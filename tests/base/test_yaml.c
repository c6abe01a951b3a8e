#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "base/yaml_place.h"

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
    {"[0.10, 1e3, 18446744073709551616]", "[[0.10,1e3,18446744073709551616]]"},
    {"[9223372036854775807, -9223372036854775808]", "[[9223372036854775807,-9223372036854775808]]"},
    {"[1.5, -.5, 2., 1e3, 09]", "[[1.5,-0.5,2.0,1e3,9.0]]"},
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
        struct json *documents = NULL;
        struct error err;
        assert_ok(yaml_parse(good[i].yaml, strlen(good[i].yaml), "t.yaml", &documents, &err), &err);
        auto_free char *json = json_print(documents, JSON_COMPACT);
        assert_string_equal(json, good[i].json);
        json_free(documents);
    }
}

struct bad_row {
    const char *yaml;
    const char *message;
};

static const struct bad_row bad[] = {
    {"a: [1,\nb: 2", "t.yaml:3:1: while parsing a flow sequence"},
    {"a: 1\n\tb: 2", "t.yaml:2:1: a tab: YAML is indented with blanks only"},
    {"a:\n  b: 1\n  \tc: 2\n", "a tab: YAML is indented with blanks only"},
    {"a: 1\nname: {{ .Release.Name }}\n", "t.yaml:2:8: {{ is of a template: render it first"},
    {"a: 1\n{{- if .Values.x }}\nb: 2\n", "t.yaml:2:1: {{ is of a template: render it first"},
    {"a: '{{'\nb: 2\nb: 3\n", "t.yaml:3:1: this key is there twice: b"},
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
        struct json *documents = NULL;
        struct error err;
        int result = yaml_parse(bad[i].yaml, strlen(bad[i].yaml), "t.yaml", &documents, &err);
        assert_fails(result, &err, ERR_INPUT, bad[i].message);
        assert_null(documents);
    }
}

static void what_is_no_text_is_named(void **state)
{
    (void)state;
    char tar[512] = "job.yaml";
    memcpy(tar + 257, "ustar", 5);
    const struct {
        const char *bytes;
        size_t count;
        const char *message;
    } rows[] = {
        {"\x1f\x8b\x08\0\0\0\0\0", 8, "t.yaml: this is gzip, not text: unpack it first (gunzip)"},
        {"\x28\xb5\x2f\xfd\x24", 5, "t.yaml: this is zstd"},
        {"\xfd"
         "7zXZ\0\0",
         7, "t.yaml: this is xz"},
        {"PK\x03\x04\x14\0", 6, "t.yaml: this is a zip archive"},
        {"BZh91AY&SY\x01", 11, "t.yaml: this is bzip2"},
        {"\x7f"
         "ELF\x02\x01\x01\0",
         8, "t.yaml: this is a program (ELF), not text"},
        {"\0k\0i\0n\0d\0:", 10,
         "t.yaml: this is UTF-16, not UTF-8: convert it first (iconv -f UTF-16BE"},
        {"k\0i\0n\0d\0:\0", 10,
         "t.yaml: this is UTF-16, not UTF-8: convert it first (iconv -f UTF-16LE"},
        {"\0\0\0k\0\0\0i", 8,
         "t.yaml: this is UTF-32, not UTF-8: convert it first (iconv -f UTF-32BE"},
        {"\xff\xfe\0\0k\0\0\0i\0\0\0", 12,
         "t.yaml: this is UTF-32, not UTF-8: convert it first (iconv -f UTF-32LE"},
        {"\n <!DOCTYPE html>\n<html lang=\"en\">\n", 38,
         "t.yaml: this is an HTML page, not YAML: fetch the file itself (of GitHub, its raw"},
        {"<HTML><body>404", 15, "t.yaml: this is an HTML page"},
        {tar, sizeof tar, "t.yaml: this is a tar archive, not text: unpack it first (tar -xf)"},
        {"kind: caf\xe9\n", 11, "t.yaml: byte 9: not text in UTF-8: "},
        {"\x01\x02\x03", 3,
         "t.yaml: byte 0: not text in UTF-8: control characters are not allowed"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct json *documents = NULL;
        struct error err = {0};
        int result = yaml_parse(rows[i].bytes, rows[i].count, "t.yaml", &documents, &err);
        assert_fails(result, &err, ERR_INPUT, rows[i].message);
    }
}

static void paths_lead_to_lines(void **state)
{
    (void)state;
    static const char text[] = "---\n"
                               "---\n"
                               "first: &it\n"
                               "  a.b/c: 1\n"
                               "---\n"
                               "spec:\n"
                               "  Worker:\n"
                               "    args: [x, {y: 1,\n"
                               "      z: 2}]\n"
                               "    'quoted key': 1\n"
                               "    again: &x {deep: 1}\n"
                               "    <<: {merged: 1}\n"
                               "    alias: *x\n"
                               "    list:\n"
                               "    - one\n"
                               "    -\n"
                               "      two: 2\n";
    static const struct {
        size_t document;
        const char *path;
        size_t line;
    } rows[] = {
        {0, "first", 3},
        {0, "first.a.b/c", 4},
        {0, "first[a.b/c]: must be text", 4},
        {0, "first.a", 3},
        {1, "", 6},
        {1, "kind, apiVersion: Required value", 6},
        {1, "spec", 6},
        {1, "spec[Worker]", 7},
        {1, "spec.Worker.args[0]", 8},
        {1, "spec.Worker.args[1].y: wrong", 8},
        {1, "spec.Worker.args[1].z is deprecated", 9},
        {1, "spec.Worker.args[2]", 8},
        {1, "spec.Worker.arg", 7},
        {1, "spec.Worker.quoted key", 10},
        {1, "spec.Worker.again.deep", 11},
        {1, "spec.Worker.merged", 7},
        {1, "spec.Worker.alias.deep", 13},
        {1, "spec.Worker.list[0].two", 15},
        {1, "spec.Worker.list[1].two", 17},
        {2, "spec", 0},
    };
    enum { DOCUMENTS = 3 };
    for (size_t document = 0; document < DOCUMENTS; document++) { /* all at once, and each alone */
        const char *paths[array_length(rows)];
        size_t wanted[array_length(rows)], lines[array_length(rows)], count = 0, line;
        for (size_t i = 0; i < array_length(rows); i++)
            if (rows[i].document == document)
                paths[count] = rows[i].path, wanted[count++] = rows[i].line;
        yaml_lines(text, strlen(text), document, paths, count, lines);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(lines[i], wanted[i]);
            yaml_lines(text, strlen(text), document, &paths[i], 1, &line);
            assert_int_equal(line, wanted[i]);
        }
    }
}

static void assert_too_much(struct str *text, const char *message)
{
    struct json *documents = NULL;
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
        cmocka_unit_test(what_is_no_text_is_named),
        cmocka_unit_test(paths_lead_to_lines),
        cmocka_unit_test(limits_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
