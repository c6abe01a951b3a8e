#include "tests/operator/kube/watch_script.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/kube/watch.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

/* ---- what it tells ---- */

static const char *name_of(const struct json *object)
{
    const char *name = json_as_text(json_get(json_get(object, "metadata"), "name"));
    return name ? name : "?";
}

static void on_begin(void *context)
{
    str_add(&((struct watch_script *)context)->said, "begin ");
}

static void on_put(void *context, const struct json *object)
{
    str_printf(&((struct watch_script *)context)->said, "+%s ", name_of(object));
}

static void on_remove(void *context, const struct json *object)
{
    str_printf(&((struct watch_script *)context)->said, "-%s ", name_of(object));
}

static void on_end(void *context)
{
    str_add(&((struct watch_script *)context)->said, "end ");
}

static void on_warn(void *context, const char *message)
{
    str_printf(&((struct watch_script *)context)->said, "[%s] ", message);
}

void watch_script_open(struct watch_script *s, const char *selector)
{
    *s = (struct watch_script){.now_ms = 1};
    str_init(&s->said, 1 << 16);
    s->watch = watch_open(&(struct watch_options){.path = "/pods",
                                                  .selector = selector,
                                                  .page = 2,
                                                  .timeout_s = 290,
                                                  .backoff_first_ms = WATCH_SCRIPT_FIRST_MS,
                                                  .backoff_max_ms = WATCH_SCRIPT_MAX_MS,
                                                  .seed = 1,
                                                  .begin_list = on_begin,
                                                  .put = on_put,
                                                  .remove = on_remove,
                                                  .end_list = on_end,
                                                  .warn = on_warn,
                                                  .context = s});
}

void watch_script_close(struct watch_script *s)
{
    watch_close(s->watch);
    str_free(&s->said);
}

/* ---- what it is given ---- */

#define SPACES " \t"

static void say_want(struct watch_script *s)
{
    const char *path = NULL;
    enum watch_action want = watch_next(s->watch, s->now_ms, &path);
    if (want == WATCH_ACTION_NOTHING)
        str_add(&s->said, watch_due(s->watch) == INT64_MAX ? "in flight " : "waits ");
    else
        str_printf(&s->said, "%s %s ", want == WATCH_ACTION_LIST ? "LIST" : "STREAM", path);
}

const struct error *watch_script_failure(const char *how, struct error *err)
{
    static const struct {
        const char *name;
        enum error_code code;
    } failures[] = {{"gone", ERR_GONE},   {"timeout", ERR_TIMEOUT},     {"missing", ERR_NOT_FOUND},
                    {"input", ERR_INPUT}, {"forbidden", ERR_FORBIDDEN}, {"good", ERR_NONE},
                    {"large", ERR_LIMIT}};
    *err = (struct error){0};
    for (size_t i = 0; i < array_length(failures); i++)
        if (strcmp(how, failures[i].name) == 0) {
            if (failures[i].code != ERR_NONE)
                error_set(err, failures[i].code, "%s", how);
            return err;
        }
    fail_msg("unknown failure %s", how);
    return err;
}

static void feed_head(struct watch_script *s, const char *token)
{
    struct json *head =
        json_object_of("metadata", json_texts_of("continue", token ? token : "", NULL), NULL);
    const char *path = watch_feed_head(s->watch, head);
    str_printf(&s->said, "ahead %s ", path ? path : "nothing");
    json_free(head);
}

static void feed_list(struct watch_script *s, const struct json *answer, const struct error *err,
                      int64_t asked_ms)
{
    if (watch_feed_list(s->watch, answer, err, asked_ms, s->now_ms))
        str_add(&s->said, "stays ");
}

static void feed_page(struct watch_script *s, char *arguments)
{
    char *names = strsep(&arguments, " "), *version = strsep(&arguments, " ");
    struct json *items = json_new_array();
    for (char *name; (name = strsep(&names, ","));)
        if (strcmp(name, "-") != 0)
            json_append(items, json_object_of("metadata", json_texts_of("name", name, NULL), NULL));
    struct json *metadata =
        json_texts_of("resourceVersion", version, "continue", arguments ? arguments : "", NULL);
    struct json *answer = json_object_of("metadata", metadata, "items", items, NULL);
    feed_list(s, answer, NULL, 0);
    json_free(answer);
}

static void feed_failure(struct watch_script *s, const char *verb, char *arguments)
{
    struct error err;
    watch_script_failure(strsep(&arguments, " "), &err);
    int64_t asked_ms = arguments ? atoi(arguments) : 0;
    if (strcmp(verb, "list") == 0)
        feed_list(s, NULL, &err, asked_ms);
    else
        watch_feed_end(s->watch, &err, asked_ms, s->now_ms);
}

static void feed_line(struct watch_script *s, const char *line)
{
    if (!watch_feed_line(s->watch, line, strlen(line), s->now_ms))
        str_add(&s->said, "cancel ");
}

static void feed_event(struct watch_script *s, char *arguments)
{
    char *type = strsep(&arguments, " "), *name = strsep(&arguments, " ");
    auto_free char *line = xasprintf("{\"type\":\"%s\",\"object\":{\"metadata\":{\"name\":\"%s\","
                                     "\"resourceVersion\":\"%s\"}}}",
                                     type, name, arguments);
    feed_line(s, line);
}

static void say_failing(struct watch_script *s)
{
    const struct error *err;
    int64_t since_ms = watch_failing_since(s->watch, &err);
    assert_true((since_ms != 0) == (err != NULL));
    if (err)
        str_printf(&s->said, "since %d: %s ", (int)since_ms, err->msg);
    else
        str_add(&s->said, "well ");
}

static void do_one(struct watch_script *s, char *command)
{
    command += strspn(command, SPACES);
    char *rest = command, *verb = strsep(&rest, " ");
    if (strcmp(verb, "next") == 0) {
        say_want(s);
    } else if (strcmp(verb, "page") == 0) {
        feed_page(s, rest);
    } else if (strcmp(verb, "answer") == 0 || strcmp(verb, "item") == 0) {
        struct json *answer = json_parse_text(rest, JSON_ALLOW_SCALAR, NULL);
        if (*verb == 'i')
            watch_feed_item(s->watch, answer);
        else
            feed_list(s, answer, NULL, 0);
        json_free(answer);
    } else if (strcmp(verb, "head") == 0) {
        feed_head(s, rest);
    } else if (strcmp(verb, "list") == 0 || strcmp(verb, "end") == 0) {
        feed_failure(s, verb, rest);
    } else if (strcmp(verb, "event") == 0) {
        feed_event(s, rest);
    } else if (strcmp(verb, "line") == 0) {
        feed_line(s, rest ? rest : "");
    } else if (strcmp(verb, "error") == 0) {
        auto_free char *line = xasprintf("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\","
                                         "\"message\":\"no\",\"code\":%s}}",
                                         rest);
        feed_line(s, line);
    } else if (strcmp(verb, "relist") == 0) {
        if (watch_relist_if_silent(s->watch, s->now_ms - atoi(rest), s->now_ms))
            str_add(&s->said, "cancel ");
    } else if (strcmp(verb, "anew") == 0) {
        str_add(&s->said, watch_relist(s->watch, s->now_ms) ? "cancel " : "lists ");
    } else if (strcmp(verb, "wait") == 0) {
        s->now_ms += WATCH_SCRIPT_MAX_MS;
    } else if (strcmp(verb, "tick") == 0) {
        s->now_ms += atoi(rest);
    } else if (strcmp(verb, "synced") == 0) {
        str_add(&s->said, watch_is_synced(s->watch) ? "synced " : "not synced ");
    } else if (strcmp(verb, "refused") == 0) {
        str_add(&s->said, watch_is_refused(s->watch) ? "may not " : "may ");
    } else if (strcmp(verb, "failing") == 0) {
        say_failing(s);
    } else {
        fail_msg("unknown command %s", verb);
    }
}

void watch_script_do(struct watch_script *s, const char *script)
{
    auto_free char *copy = xstrdup(script);
    char *rest = copy;
    for (char *command; *script && (command = strsep(&rest, ";"));)
        do_one(s, command);
}
