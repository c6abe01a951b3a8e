/* The containers in which workers wait: our own, a foreign image, a file, none. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/manifest/init_template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *write_template(const char *directory, const char *text)
{
    char *path = xasprintf("%s/t.yaml", directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static char *expanded(const struct init_options *options)
{
    struct init_template *template_;
    struct error err;
    assert_ok(init_template_open(&template_, options, &err), &err);
    struct json *containers = init_template_expand(template_, "j-master-0");
    char *text = json_print(containers, JSON_SORTED);
    json_free(containers);
    init_template_close(template_);
    return text;
}

static void our_own_image_does_the_waiting(void **state)
{
    (void)state;
    struct init_options options = {
        .path = INIT_TEMPLATE_PATH, .image = "r.io/shoal-operator:1", .max_tries = 7};
    auto_free char *text = expanded(&options);
    options.max_tries = 0;
    auto_free char *patient = expanded(&options);
    assert_non_null(strstr(patient, "[\"shoal-operator\",\"wait-for\",\"j-master-0\"]"));
    assert_string_equal(
        text,
        "[{\"command\":[\"shoal-operator\",\"wait-for\",\"j-master-0\",\"--tries\",\"7\"],"
        "\"image\":\"r.io/shoal-operator:1\",\"imagePullPolicy\":\"IfNotPresent\",\"name\":\"init-pytorch\","
        "\"securityContext\":{\"allowPrivilegeEscalation\":false,\"capabilities\":"
        "{\"drop\":[\"ALL\"]},\"readOnlyRootFilesystem\":true,\"runAsNonRoot\":true,\"runAsUser\":65532,\"seccompProfile\":"
        "{\"type\":\"RuntimeDefault\"}}}]");
}

static void an_image_of_the_users_needs_a_shell(void **state)
{
    (void)state;
    struct init_options options = {
        .path = INIT_TEMPLATE_PATH, .image = "alpine:3.10", .max_tries = 7};
    auto_free char *text = expanded(&options);
    assert_non_null(strstr(text, "\"image\":\"alpine:3.10\""));
    assert_non_null(strstr(text, "[\"sh\",\"-c\",\"for i in $(seq 7); do nslookup j-master-0 &&"));
    options.max_tries = 0;
    auto_free char *unsaid = expanded(&options);
    assert_non_null(strstr(unsaid, "for i in $(seq 100);"));
}

static void workers_need_not_wait(void **state)
{
    (void)state;
    struct init_options options = {.path = INIT_TEMPLATE_PATH, .image = "", .max_tries = 7};
    auto_free char *text = expanded(&options);
    assert_string_equal(text, "[]");
}

static void files_replace_it(void **state)
{
    (void)state;
    static const struct {
        const char *text, *image, *expanded;
    } rows[] = {
        {"- name: a\n  image: {{.InitContainerImage}}\n  args: ['{{ .MasterAddr }}', "
         "'{{.MaxTries}}']\n",
         "i", "[{\"args\":[\"j-master-0\",\"9\"],\"image\":\"i\",\"name\":\"a\"}]"},
        {"- name: a\n  image: {{.InitContainerImage}}\n", "o",
         "[{\"image\":\"o\",\"name\":\"a\"}]"},
        {"- {name: a, image: b}\n- {name: c, image: d, tty: true}\n", "i",
         "[{\"image\":\"b\",\"name\":\"a\"},{\"image\":\"d\",\"name\":\"c\",\"tty\":true}]"},
        {"[]\n", "i", "[]"},
        {"", "i", "[]"},
    };
    auto_free char *directory = support_temp_dir();
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *path = write_template(directory, rows[i].text);
        struct init_options options = {.path = path, .image = rows[i].image, .max_tries = 9};
        auto_free char *text = expanded(&options);
        assert_string_equal(text, rows[i].expanded);
    }
    support_remove_tree(directory);
}

static void spoilt_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum error_code code;
        const char *part;
    } rows[] = {
        {"- name: {{.Name}}\n", ERR_CONFIG, "\"{{.Name}}"},
        {"- name: {{.MasterAddr\n", ERR_CONFIG, "only {{.MasterAddr}}"},
        {"name: a\n", ERR_CONFIG, "must be a list of containers"},
        {"- {name: a}\n", ERR_CONFIG, "each with name and image"},
        {"- a\n", ERR_CONFIG, "each with name and image"},
        {"- {name: a", ERR_INPUT, "t.yaml:"},
    };
    auto_free char *directory = support_temp_dir();
    struct init_template *template_;
    struct error err;
    struct init_options options = {.image = "o", .max_tries = 9};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *path = write_template(directory, rows[i].text);
        options.path = path;
        assert_fails(init_template_open(&template_, &options, &err), &err, rows[i].code,
                     rows[i].part);
    }
    auto_free char *absent = xasprintf("%s/absent.yaml", directory);
    options.path = absent;
    assert_fails(init_template_open(&template_, &options, &err), &err, ERR_NOT_FOUND,
                 "absent.yaml");
    support_remove_tree(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_own_image_does_the_waiting),
        cmocka_unit_test(an_image_of_the_users_needs_a_shell),
        cmocka_unit_test(workers_need_not_wait),
        cmocka_unit_test(files_replace_it),
        cmocka_unit_test(spoilt_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
