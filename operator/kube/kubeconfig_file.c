#include "operator/kube/kubeconfig_file.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

/* ---- the file's own shape ---- */

/* PATH, or base64 in the field's sister NAME-data, which wins. */
struct pem {
    const char *path, *data;
};

struct cluster {
    const char *server, *server_name, *proxy_url;
    struct pem ca;
    bool insecure;
};

enum interactive {
    INTERACTIVE_UNSET,
    INTERACTIVE_NEVER,
    INTERACTIVE_IF_AVAILABLE,
    INTERACTIVE_ALWAYS
};
static const char *const interactive_modes[] = {"", "Never", "IfAvailable", "Always", NULL};

struct user {
    struct pem certificate, key;
    const char *token, *token_file;
    bool has_exec;
    struct kubeconfig_exec exec;
    int interactive;         /* enum interactive */
    const char *unsupported; /* the first field of those that we do not do; NULL: none */
};

struct context {
    const char *cluster, *user, *namespace_;
};

/* One list element each: a name and what it names. */
struct named_cluster {
    const char *name;
    struct cluster value;
};
struct named_user {
    const char *name;
    struct user value;
};
struct named_context {
    const char *name;
    struct context value;
};

struct kubeconfig_file {
    const char *path;
    const char *current_context;
    struct named_cluster *clusters;
    struct named_user *users;
    struct named_context *contexts;
    size_t cluster_count, user_count, context_count;
    struct kubeconfig_file *next;
};

/* ---- tables ---- */

static void read_base64(struct json_reader *reader, const struct json *value, void *field)
{
    const char *text = json_read_text(reader, value);
    if (!text || !*text)
        return;
    /* EVP_DecodeBlock is simpler, but counts the padding as bytes and refuses the line breaks that
     * base64(1) writes. */
    size_t length = strlen(text);
    unsigned char *out = arena_alloc(reader->arena, length + 1);
    EVP_ENCODE_CTX *decoder = EVP_ENCODE_CTX_new();
    int count = 0, rest = 0;
    EVP_DecodeInit(decoder);
    bool good =
        EVP_DecodeUpdate(decoder, out, &count, (const unsigned char *)text, (int)length) >= 0 &&
        EVP_DecodeFinal(decoder, out + count, &rest) > 0 && count + rest > 0;
    EVP_ENCODE_CTX_free(decoder);
    if (good)
        *(const char **)field = (const char *)out;
    else
        json_problem(reader, "must be base64");
}

static const struct json_field cluster_fields[] = {
    JSON_TEXT("server", struct cluster, server),
    JSON_TEXT("tls-server-name", struct cluster, server_name),
    JSON_TEXT("proxy-url", struct cluster, proxy_url),
    JSON_TEXT("certificate-authority", struct cluster, ca.path),
    JSON_CUSTOM("certificate-authority-data", struct cluster, ca.data, read_base64),
    JSON_BOOL("insecure-skip-tls-verify", struct cluster, insecure),
    JSON_END,
};

static const struct json_field variable_fields[] = {
    JSON_TEXT("name", struct kubeconfig_variable, name),
    JSON_TEXT("value", struct kubeconfig_variable, value),
    JSON_END,
};

static const struct json_field exec_fields[] = {
    JSON_TEXT("apiVersion", struct user, exec.api_version),
    JSON_TEXT("command", struct user, exec.command),
    JSON_TEXTS("args", struct user, exec.args, exec.arg_count),
    JSON_ARRAY_OF("env", struct user, exec.env, exec.env_count, struct kubeconfig_variable,
                  variable_fields),
    JSON_TEXT("installHint", struct user, exec.install_hint),
    JSON_BOOL("provideClusterInfo", struct user, exec.provide_cluster_info),
    JSON_CHOICE("interactiveMode", struct user, interactive, interactive_modes),
    JSON_END,
};

static void read_exec(struct json_reader *reader, const struct json *value, void *user)
{
    if (!json_is_object_here(reader, value))
        return;
    ((struct user *)user)->has_exec = true;
    json_read(reader, value, exec_fields, user);
}

/* Refused when the user is chosen, and not skipped: without "as", for one, requests would have more
 * rights than the file grants. */
static void read_unsupported(struct json_reader *reader, const struct json *value, void *user)
{
    (void)value;
    struct user *out = user;
    if (!out->unsupported)
        out->unsupported = arena_strdup(reader->arena, strrchr(reader->path, '.') + 1);
}

static const struct json_field user_fields[] = {
    JSON_TEXT("client-certificate", struct user, certificate.path),
    JSON_CUSTOM("client-certificate-data", struct user, certificate.data, read_base64),
    JSON_TEXT("client-key", struct user, key.path),
    JSON_CUSTOM("client-key-data", struct user, key.data, read_base64),
    JSON_TEXT("token", struct user, token),
    JSON_TEXT("tokenFile", struct user, token_file),
    JSON_CUSTOM_SAME("exec", read_exec),
    JSON_CUSTOM_SAME("username", read_unsupported),
    JSON_CUSTOM_SAME("password", read_unsupported),
    JSON_CUSTOM_SAME("auth-provider", read_unsupported),
    JSON_CUSTOM_SAME("as", read_unsupported),
    JSON_CUSTOM_SAME("as-uid", read_unsupported),
    JSON_CUSTOM_SAME("as-groups", read_unsupported),
    JSON_CUSTOM_SAME("as-user-extra", read_unsupported),
    JSON_END,
};

static const struct json_field context_fields[] = {
    JSON_TEXT("cluster", struct context, cluster),
    JSON_TEXT("user", struct context, user),
    JSON_TEXT("namespace", struct context, namespace_),
    JSON_END,
};

static const struct json_field named_cluster_fields[] = {
    JSON_TEXT("name", struct named_cluster, name),
    JSON_PART("cluster", struct named_cluster, value, cluster_fields),
    JSON_END,
};
static const struct json_field named_user_fields[] = {
    JSON_TEXT("name", struct named_user, name),
    JSON_PART("user", struct named_user, value, user_fields),
    JSON_END,
};
static const struct json_field named_context_fields[] = {
    JSON_TEXT("name", struct named_context, name),
    JSON_PART("context", struct named_context, value, context_fields),
    JSON_END,
};
static const struct json_field file_fields[] = {
    JSON_TEXT("current-context", struct kubeconfig_file, current_context),
    JSON_ARRAY_OF("clusters", struct kubeconfig_file, clusters, cluster_count, struct named_cluster,
                  named_cluster_fields),
    JSON_ARRAY_OF("users", struct kubeconfig_file, users, user_count, struct named_user,
                  named_user_fields),
    JSON_ARRAY_OF("contexts", struct kubeconfig_file, contexts, context_count, struct named_context,
                  named_context_fields),
    JSON_END,
};

int kubeconfig_file_add(struct kubeconfig_file **files, const char *text, size_t bytes,
                        const char *path, struct arena *arena, struct error *err)
{
    struct json *documents;
    if (yaml_parse(text, bytes, path, &documents, err))
        return -1;
    struct lines problems;
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems};
    struct kubeconfig_file *file = arena_new(arena, struct kubeconfig_file);
    file->path = arena_strdup(arena, path);
    if (json_array_count(documents) > 1)
        lines_add(&problems, "more than one document");
    for (size_t i = 0; i < json_array_count(documents); i++)
        if (json_is_object_here(&reader, json_at(documents, i)))
            json_read(&reader, json_at(documents, i), file_fields, file);
    json_free(documents);
    if (problems.count)
        return error_set(err, ERR_INPUT, "%s: %s", path, lines_join(&problems));
    while (*files)
        files = &(*files)->next;
    *files = file;
    return 0;
}

/* ---- from a context to a login ---- */

/* Finds the named element in the first file that has it; ret_file is that one. */
#define FIND(files, list, count, wanted, ret_file)                                                 \
    ({                                                                                             \
        __typeof__(&(files)->list[0].value) found_ = NULL;                                         \
        for (const struct kubeconfig_file *f_ = (files); f_ && !found_; f_ = f_->next)             \
            for (size_t i_ = 0; i_ < f_->count && !found_; i_++)                                   \
                if (f_->list[i_].name && strcmp(f_->list[i_].name, (wanted)) == 0) {               \
                    found_ = &f_->list[i_].value;                                                  \
                    *(ret_file) = f_;                                                              \
                }                                                                                  \
        found_;                                                                                    \
    })

static bool is_given(const char *text)
{
    return text && *text;
}

/* As seen from the directory of `file`. */
static const char *resolve(const struct kubeconfig_file *file, const char *path,
                           struct arena *arena)
{
    const char *slash = strrchr(file->path, '/');
    if (path[0] == '/' || !slash)
        return path;
    return arena_printf(arena, "%.*s/%s", (int)(slash - file->path), file->path, path);
}

static struct kubeconfig_source source_of(const struct kubeconfig_file *file, const char *owner,
                                          const char *field, const char *path, const char *text,
                                          struct arena *arena)
{
    struct kubeconfig_source source = {
        .what = arena_printf(arena, "%s: %s: %s", file->path, owner, field)};
    if (is_given(text))
        source.text = text;
    else if (is_given(path))
        source.path = resolve(file, path, arena);
    return source;
}

/* The token goes with the request: unverified transport is for this machine only. */
static bool is_loopback(const char *server)
{
    static const char *const hosts[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
    for (size_t i = 0; i < array_length(hosts); i++) {
        if (!str_starts_with(server, hosts[i]))
            continue;
        const char *rest = server + strlen(hosts[i]);
        /* Only a port: in "http://localhost:1@h" the host is h (RFC 3986, 3.2.1: userinfo). */
        if (*rest == ':')
            rest += 1 + strspn(rest + 1, "0123456789");
        if (!*rest || *rest == '/')
            return true;
    }
    return false;
}

static int login_cluster(const struct kubeconfig_file *files, const char *name, struct arena *arena,
                         struct kubeconfig_login *login, struct error *err)
{
    const struct kubeconfig_file *file = files;
    const struct cluster *cluster = FIND(files, clusters, cluster_count, name, &file);
    if (!cluster)
        return error_set(err, ERR_CONFIG, "no cluster \"%s\" in it", name);
    const char *owner = arena_printf(arena, "cluster \"%s\"", name);
    if (cluster->insecure)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: insecure-skip-tls-verify: refused, as TLS is always verified: give "
                         "certificate-authority",
                         owner);
    if (is_given(cluster->proxy_url))
        return error_set(err, ERR_UNSUPPORTED, "%s: proxy-url: not supported", owner);
    if (!is_given(cluster->server))
        return error_set(err, ERR_CONFIG, "%s: server: missing", owner);
    if (!str_starts_with(cluster->server, "https://") && !is_loopback(cluster->server))
        return error_set(err, ERR_CONFIG,
                         "%s: server: \"%s\": must begin with https:// (http:// is for this "
                         "machine only)",
                         owner, cluster->server);
    size_t length = strlen(cluster->server);
    while (cluster->server[length - 1] == '/')
        length--;
    login->server = arena_strndup(arena, cluster->server, length);
    login->server_name = is_given(cluster->server_name) ? cluster->server_name : NULL;
    login->ca =
        source_of(file, owner, "certificate-authority", cluster->ca.path, cluster->ca.data, arena);
    return 0;
}

static int login_exec(const struct kubeconfig_file *file, const char *owner,
                      const struct user *user, struct arena *arena, struct kubeconfig_login *login,
                      struct error *err)
{
    if (!is_given(user->exec.command))
        return error_set(err, ERR_CONFIG, "%s: exec.command: missing", owner);
    const char *version = is_given(user->exec.api_version) ? user->exec.api_version : "";
    if (strcmp(version, "client.authentication.k8s.io/v1") != 0 &&
        strcmp(version, "client.authentication.k8s.io/v1beta1") != 0)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: exec.apiVersion: \"%s\": must be client.authentication.k8s.io/v1 or "
                         "v1beta1",
                         owner, version);
    if (user->interactive == INTERACTIVE_ALWAYS)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: exec.interactiveMode: Always: nobody is here to be asked", owner);
    for (size_t i = 0; i < user->exec.env_count; i++)
        if (!is_given(user->exec.env[i].name) || strchr(user->exec.env[i].name, '='))
            return error_set(err, ERR_CONFIG, "%s: exec.env[%zu].name: missing or with \"=\"",
                             owner, i);
    struct kubeconfig_exec *exec = arena_new(arena, struct kubeconfig_exec);
    *exec = user->exec;
    exec->what = arena_printf(arena, "%s: %s: exec", file->path, owner);
    /* As kubectl: a bare name is looked up in PATH, a path with a slash is relative to the file. */
    if (strchr(exec->command, '/'))
        exec->command = resolve(file, exec->command, arena);
    login->exec = exec;
    return 0;
}

static int login_user(const struct kubeconfig_file *files, const char *name, struct arena *arena,
                      struct kubeconfig_login *login, struct error *err)
{
    const struct kubeconfig_file *file = files;
    const struct user *user = FIND(files, users, user_count, name, &file);
    if (!user)
        return error_set(err, ERR_CONFIG, "no user \"%s\" in it", name);
    const char *owner = arena_printf(arena, "user \"%s\"", name);
    if (user->unsupported)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: %s: not supported: use a client certificate, a token or exec", owner,
                         user->unsupported);
    login->certificate = source_of(file, owner, "client-certificate", user->certificate.path,
                                   user->certificate.data, arena);
    login->key = source_of(file, owner, "client-key", user->key.path, user->key.data, arena);
    /* a file is read again and again, so it is the newer one */
    login->token = is_given(user->token_file)
                       ? source_of(file, owner, "tokenFile", user->token_file, NULL, arena)
                       : source_of(file, owner, "token", NULL, user->token, arena);
    bool has_certificate = login->certificate.path || login->certificate.text;
    bool has_key = login->key.path || login->key.text;
    if (has_certificate != has_key)
        return error_set(err, ERR_CONFIG, "%s: %s: missing", owner,
                         has_certificate ? "client-key" : "client-certificate");
    if (!user->has_exec)
        return 0;
    if (login->token.path || login->token.text || has_certificate)
        return error_set(err, ERR_CONFIG,
                         "%s: exec: there is a token or certificate too: keep one of them", owner);
    return login_exec(file, owner, user, arena, login, err);
}

static const char *current_context(const struct kubeconfig_file *files)
{
    for (; files; files = files->next)
        if (is_given(files->current_context))
            return files->current_context;
    return NULL;
}

int kubeconfig_file_login(const struct kubeconfig_file *files, const char *name,
                          struct arena *arena, struct kubeconfig_login *ret_login,
                          struct error *err)
{
    assert(files);
    if (!name)
        name = current_context(files);
    if (!name)
        return error_set(err, ERR_CONFIG, "%s: current-context: missing: name a context",
                         files->path);
    const struct kubeconfig_file *file = files;
    const struct context *context = FIND(files, contexts, context_count, name, &file);
    if (!context)
        return error_set(err, ERR_CONFIG, "%s: no context \"%s\" in it", files->path, name);
    struct kubeconfig_login login = {0};
    if (login_cluster(files, is_given(context->cluster) ? context->cluster : "", arena, &login,
                      err) ||
        (is_given(context->user) && login_user(files, context->user, arena, &login, err)))
        return error_wrap(err, "%s: context \"%s\"", file->path, name);
    login.namespace_ = is_given(context->namespace_) ? context->namespace_ : NULL;
    *ret_login = login;
    return 0;
}
