#include "operator/manifest/init_template.h"

#include "base/contract.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "operator/job/names.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Whatever a namespace demands of pods, ours grants; what it asks for manifest_pod says. */
static const char own_format[] =
    "- name: init-pytorch\n"
    "  image: \"{{.InitContainerImage}}\"\n"
    "  imagePullPolicy: IfNotPresent\n"
    "  command: [" OPERATOR_PROGRAM ", wait-for, \"{{.MasterAddr}}\"%s]\n"
    "  securityContext:\n"
    "    allowPrivilegeEscalation: false\n"
    "    readOnlyRootFilesystem: true\n"
    "    runAsNonRoot: true\n"
    "    runAsUser: 65532\n" /* or a pod that says root could not start */
    "    capabilities: {drop: [ALL]}\n"
    "    seccompProfile: {type: RuntimeDefault}\n";

static const char shell_text[] =
    "- name: init-pytorch\n"
    "  image: \"{{.InitContainerImage}}\"\n"
    "  imagePullPolicy: IfNotPresent\n"
    "  command: [sh, -c, \"for i in $(seq {{.MaxTries}}); do nslookup {{.MasterAddr}} && exit 0; "
    "echo waiting for {{.MasterAddr}}; sleep 2; done; exit 1\"]\n";

#define LONGEST_NAME "name-name-name-name-name-name-name-name-name-name-name-name-nam"
_Static_assert(sizeof LONGEST_NAME - 1 == NAMES_LABEL_MAX_BYTES, "as long as a label may be");

struct init_template {
    char *text;
    char *source; /* for messages */
    char *image;
    int64_t max_tries;
};

/* The value that an expression (what is between the braces) stands for; NULL: none of ours. */
static const char *value_of(const struct init_template *template_, const char *master,
                            const char *expression, size_t bytes, char *number, size_t number_bytes)
{
    while (bytes && *expression == ' ')
        expression++, bytes--;
    while (bytes && expression[bytes - 1] == ' ')
        bytes--;
    snprintf(number, number_bytes, "%" PRId64, template_->max_tries);
    const struct {
        const char *name, *value;
    } values[] = {
        {".MasterAddr", master},
        {".InitContainerImage", template_->image},
        {".MaxTries", number},
    };
    for (size_t i = 0; i < array_length(values); i++)
        if (strlen(values[i].name) == bytes && memcmp(values[i].name, expression, bytes) == 0)
            return values[i].value;
    return NULL;
}

static int substitute(const struct init_template *template_, const char *master, struct str *out,
                      struct error *err)
{
    const char *from = template_->text, *open;
    while ((open = strstr(from, "{{"))) {
        const char *close = strstr(open, "}}");
        char number[32];
        const char *value = close ? value_of(template_, master, open + 2,
                                             (size_t)(close - open - 2), number, sizeof number)
                                  : NULL;
        if (!value)
            return error_set(err, ERR_CONFIG,
                             "%s: \"%.40s\": only {{.MasterAddr}}, {{.InitContainerImage}} and "
                             "{{.MaxTries}} are known",
                             template_->source, open);
        str_add_bytes(out, from, (size_t)(open - from));
        str_add(out, value);
        from = close + 2;
    }
    str_add(out, from);
    if (out->truncated)
        return error_set(err, ERR_LIMIT, "%s: more than %d bytes with its values",
                         template_->source, INIT_TEMPLATE_MAX_BYTES);
    return 0;
}

static bool is_text(const struct json *container, const char *key)
{
    const char *text = json_as_text(json_get(container, key));
    return text && *text;
}

static int expand(const struct init_template *template_, const char *master,
                  struct json **ret_containers, struct error *err)
{
    auto_str struct str text;
    str_init(&text, INIT_TEMPLATE_MAX_BYTES);
    struct json *documents, *list, *container;
    if (substitute(template_, master, &text, err) < 0 ||
        yaml_parse(str_text(&text), text.length, template_->source, &documents, err) < 0)
        return -1;
    list = json_take_at(documents, 0);
    json_free(documents);
    bool good = !list || json_is_array(list);
    json_each_item(container, list) {
        good &= is_text(container, "name") && is_text(container, "image");
    }
    if (!good) {
        json_free(list);
        return error_set(err, ERR_CONFIG,
                         "%s: must be a list of containers, each with name and image",
                         template_->source);
    }
    *ret_containers = list ? list : json_new_array();
    return 0;
}

static char *built_in(const struct init_options *options)
{
    if (!*options->image)
        return xstrdup("");
    if (!names_image_is(options->image, OPERATOR_PROGRAM))
        return xstrdup(shell_text);
    return xasprintf(own_format, options->max_tries ? ", --tries, \"{{.MaxTries}}\"" : "");
}

int init_template_open(struct init_template **ret_template, const struct init_options *options,
                       struct error *err)
{
    char *text = NULL;
    size_t bytes;
    if (file_read(options->path, INIT_TEMPLATE_MAX_BYTES, &text, &bytes, err) < 0 &&
        (err->code != ERR_NOT_FOUND || strcmp(options->path, INIT_TEMPLATE_PATH) != 0))
        return error_wrap(err, "init containers");
    struct init_template *template_ = xcalloc(1, sizeof *template_);
    template_->source = xstrdup(text ? options->path : "the built-in init container");
    template_->text = text ? text : built_in(options);
    template_->image = xstrdup(options->image);
    template_->max_tries = options->max_tries ? options->max_tries : INIT_TRIES;
    struct json *containers;
    /* Tried at the start with the longest name: a template that is wrong or too long stops the
     * operator, and not the first job. */
    if (expand(template_, LONGEST_NAME, &containers, err) < 0) {
        init_template_close(template_);
        return -1;
    }
    json_free(containers);
    *ret_template = template_;
    return 0;
}

void init_template_close(struct init_template *template_)
{
    if (!template_)
        return;
    free(template_->text);
    free(template_->source);
    free(template_->image);
    free(template_);
}

struct json *init_template_expand(const struct init_template *template_, const char *master)
{
    struct json *containers = NULL;
    struct error err;
    int result = expand(template_, master, &containers, &err);
    assert(result == 0); /* it was tried with the longest name */
    (void)result;
    return containers;
}
