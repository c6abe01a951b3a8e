#include "operator/kube/kubeconfig.h"

#include "base/certificate.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/kube/kubeconfig_exec.h"
#include "operator/kube/kubeconfig_file.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

enum {
    MAX_FILE_BYTES = 1 << 20, /* of a token or a certificate */
    MAX_CONFIG_BYTES =
        4 << 20, /* a context with its certificates takes 5 KB, and some have hundreds */
    REREAD_MS = 60 * 1000,
    EXEC_PAUSE_MS = 5 * 1000,
    EXEC_LIMIT_MS = 20 * 1000,
    EXEC_AHEAD_MS = 60 * 1000, /* a plugin is run that long before the end of what it gave, */
    EXEC_AHEAD_PART = 4,       /* or in this part of its life if that is less */
};

/* What the login's sources hold. NULL: not given. Owned. */
struct texts {
    char *ca, *certificate, *key, *token;
};

struct kubeconfig {
    struct arena *arena;
    struct kubeconfig_login login;
    struct texts texts;
    int64_t read_ms;
    uint64_t tls_version;
    /* of the exec plugin */
    struct arena *credential_arena;
    struct exec_credential credential;
    struct command_run *exec_run; /* NULL: it does not run */
    struct error exec_err;        /* why the last run gave none */
    int64_t exec_limit_ms;
    int64_t exec_ms; /* when it last ended */
    bool exec_was_run;
    struct error read_err; /* why files could not be read again */
};

/* ---- sources ---- */

static void free_texts(struct texts *texts)
{
    free(texts->ca);
    free(texts->certificate);
    free(texts->key);
    free(texts->token);
    *texts = (struct texts){0};
}

static int read_source(const struct kubeconfig_source *source, char **ret_text, struct error *err)
{
    size_t bytes;
    *ret_text = NULL;
    if (!source->path) {
        *ret_text = source->text ? xstrdup(source->text) : NULL;
        return 0;
    }
    if (file_read(source->path, MAX_FILE_BYTES, ret_text, &bytes, err))
        return error_wrap(err, "%s", source->what);
    return 0;
}

/* A token stands in a header: without the newline of its file, and with none inside. */
static int check_token(const char *token, const char *what, struct error *err)
{
    for (const char *c = token; *c; c++)
        if (!isgraph((unsigned char)*c))
            return error_set(err, ERR_INPUT, "%s: not a token: a blank or control character in it",
                             what);
    if (!*token)
        return error_set(err, ERR_INPUT, "%s: empty", what);
    return 0;
}

static void trim(char *text)
{
    size_t from = strspn(text, " \t\r\n"), length = strlen(text);
    while (length > from && isspace((unsigned char)text[length - 1]))
        length--;
    memmove(text, text + from, length - from);
    text[length - from] = '\0';
}

static int check_texts(const struct kubeconfig_login *login, const struct texts *texts,
                       int64_t now_ms, struct error *err)
{
    if (texts->token && check_token(texts->token, login->token.what, err))
        return -1;
    if (texts->ca && certificate_check_authorities(texts->ca, login->ca.what, now_ms, err))
        return -1;
    if (!texts->certificate)
        return 0;
    if (certificate_check(texts->certificate, login->certificate.what, now_ms, err))
        return -1;
    return certificate_check_key(texts->certificate, texts->key, login->key.what, err);
}

static int read_texts(const struct kubeconfig_login *login, int64_t now_ms, struct texts *ret_texts,
                      struct error *err)
{
    struct texts texts = {0};
    if (read_source(&login->ca, &texts.ca, err) == 0 &&
        read_source(&login->certificate, &texts.certificate, err) == 0 &&
        read_source(&login->key, &texts.key, err) == 0 &&
        read_source(&login->token, &texts.token, err) == 0) {
        if (texts.token)
            trim(texts.token);
        if (check_texts(login, &texts, now_ms, err) == 0) {
            *ret_texts = texts;
            return 0;
        }
    }
    free_texts(&texts);
    return -1;
}

static int reread(struct kubeconfig *config, int64_t now_ms, struct error *err)
{
    config->read_ms = now_ms;
    /* All or nothing: certificate and key are two files, which somebody replaces one after the
     * other. Between the two they do not match, and the old pair goes on serving. */
    struct texts texts, *old = &config->texts;
    if (read_texts(&config->login, now_ms, &texts, err))
        return -1;
    if (!str_equal(texts.ca, old->ca) || !str_equal(texts.certificate, old->certificate) ||
        !str_equal(texts.key, old->key))
        config->tls_version++;
    free_texts(old);
    *old = texts;
    return 0;
}

/* ---- exec plugin ---- */

static int check_credential(const struct kubeconfig_exec *exec,
                            const struct exec_credential *credential, int64_t now_ms,
                            struct error *err)
{
    if (credential->token && check_token(credential->token, exec->what, err))
        return -1;
    if (!credential->certificate)
        return 0;
    if (certificate_check(credential->certificate, exec->what, now_ms, err))
        return -1;
    return certificate_check_key(credential->certificate, credential->key, exec->what, err);
}

static int take_credential(struct kubeconfig *config, int64_t now_ms, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct exec_credential credential;
    if (kubeconfig_exec_finish(take(config->exec_run), config->login.exec, arena, &credential,
                               err) ||
        check_credential(config->login.exec, &credential, now_ms, err))
        return -1;
    if (!str_equal(credential.certificate, config->credential.certificate) ||
        !str_equal(credential.key, config->credential.key))
        config->tls_version++;
    arena_close(config->credential_arena);
    config->credential_arena = take(arena);
    config->credential = credential;
    return 0;
}

static void start_exec(struct kubeconfig *config, int64_t now_ms)
{
    config->exec_was_run = true;
    config->exec_ms = now_ms;
    config->exec_err.code = ERR_NONE;
    kubeconfig_exec_start(&config->exec_run, &config->login, config->texts.ca,
                          config->exec_limit_ms, &config->exec_err);
}

/* From when on the plugin is run again, so that what it gives is there in time. */
static int64_t ahead_ms(const struct kubeconfig *config)
{
    int64_t end_ms = config->credential.expires_ms;
    int64_t part_ms = (end_ms - config->exec_ms) / EXEC_AHEAD_PART;
    return end_ms == INT64_MAX ? end_ms
                               : end_ms - (part_ms < EXEC_AHEAD_MS ? part_ms : EXEC_AHEAD_MS);
}

/* The plugin runs ahead of the expiry, so requests rarely wait for it. They wait only if their
 * login was refused or has expired. The pause keeps a plugin that fails at once from running in a
 * loop. */
static int refresh_exec(struct kubeconfig *config, bool renew, int64_t now_ms, struct error *err)
{
    bool expired = now_ms >= config->credential.expires_ms;
    bool due = !config->exec_was_run || now_ms >= config->exec_ms + EXEC_PAUSE_MS ||
               now_ms < config->exec_ms;
    if (!config->exec_run && due && (renew || expired || now_ms >= ahead_ms(config)))
        start_exec(config, now_ms);
    if (!renew && !expired)
        return 0;
    if (config->exec_run)
        return KUBECONFIG_PENDING;
    if (config->exec_err.code == ERR_NONE)
        return 0;
    *err = config->exec_err;
    return -1;
}

/* ---- where from ---- */

static bool is_set(const char *name, const char **ret_value)
{
    const char *value = getenv(name);
    if (!value || !*value)
        return false;
    *ret_value = value;
    return true;
}

/* Kubernetes gives every pod its API server's address and a directory with a token. */
static bool is_in_cluster(const char *directory)
{
    const char *host, *port;
    auto_free char *token = xasprintf("%s/token", directory);
    return is_set("KUBERNETES_SERVICE_HOST", &host) && is_set("KUBERNETES_SERVICE_PORT", &port) &&
           access(token, F_OK) == 0;
}

static struct kubeconfig_source mounted(const char *directory, const char *name,
                                        struct arena *arena)
{
    return (struct kubeconfig_source){.what = arena_printf(arena, "service account: %s", name),
                                      .path = arena_printf(arena, "%s/%s", directory, name)};
}

/* NULL: it is not said. */
static const char *own_namespace(const char *directory, struct arena *arena)
{
    auto_free char *path = xasprintf("%s/namespace", directory), *text = NULL;
    size_t bytes;
    struct error none;
    if (file_read(path, MAX_FILE_BYTES, &text, &bytes, &none) < 0)
        return NULL;
    trim(text);
    return *text ? arena_strdup(arena, text) : NULL;
}

static void login_in_cluster(const char *directory, struct arena *arena,
                             struct kubeconfig_login *ret_login)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    /* The kubelet gives the address bare; in a URL an IPv6 address stands in brackets (RFC
     * 3986). */
    bool is_ipv6 = strchr(host, ':') != NULL;
    *ret_login = (struct kubeconfig_login){.server = arena_printf(arena, "https://%s%s%s:%s",
                                                                  is_ipv6 ? "[" : "", host,
                                                                  is_ipv6 ? "]" : "", port),
                                           .ca = mounted(directory, "ca.crt", arena),
                                           .token = mounted(directory, "token", arena),
                                           .namespace_ = own_namespace(directory, arena)};
}

static int add_file(struct kubeconfig_file **files, const char *path, struct arena *arena,
                    struct error *err)
{
    auto_free char *text = NULL;
    size_t bytes;
    if (file_read(path, MAX_CONFIG_BYTES, &text, &bytes, err))
        return error_wrap(err, "kubeconfig");
    return kubeconfig_file_add(files, text, bytes, path, arena, err);
}

/* paths: one file; with separator ":" several, of which some may be missing, as with kubectl. */
static int login_from_files(const char *paths, const char *separator, const char *context,
                            struct arena *arena, struct kubeconfig_login *ret_login,
                            struct error *err)
{
    struct kubeconfig_file *files = NULL;
    char *rest = arena_strdup(arena, paths), *path;
    while ((path = strsep(&rest, separator)))
        if (*path && add_file(&files, path, arena, err) && err->code != ERR_NOT_FOUND)
            return -1;
    return files ? kubeconfig_file_login(files, context, arena, ret_login, err) : -1;
}

/* The order of controller-runtime: the flag, KUBECONFIG, the pod's service account, ~/.kube/config.
 * An error in a file ends the search: another cluster than the meant one would be worse than
 * none. */
static int find_login(const struct kubeconfig_options *options, struct arena *arena,
                      struct kubeconfig_login *ret_login, struct error *err)
{
    const char *list, *home;
    const char *account = options->service_account ? options->service_account : SERVICE_ACCOUNT;
    error_set(err, ERR_NOT_FOUND, "kubeconfig: no path in it");
    if (options->path)
        return login_from_files(options->path, "", options->context, arena, ret_login, err);
    if (is_set("KUBECONFIG", &list))
        return login_from_files(list, ":", options->context, arena, ret_login, err);
    if (is_in_cluster(account) && !options->context) { /* a context is one of a file */
        login_in_cluster(account, arena, ret_login);
        return 0;
    }
    if (is_set("HOME", &home) && login_from_files(arena_printf(arena, "%s/.kube/config", home), "",
                                                  options->context, arena, ret_login, err) == 0)
        return 0;
    if (err->code != ERR_NOT_FOUND)
        return -1;
    return error_set(err, ERR_NOT_FOUND,
                     "no way to a cluster: KUBECONFIG is not set, this is no pod with a service "
                     "account (%s), and there is no ~/.kube/config",
                     account);
}

int kubeconfig_open(struct kubeconfig **ret_config, const struct kubeconfig_options *options,
                    int64_t now_ms, struct error *err)
{
    struct kubeconfig *config = xcalloc(1, sizeof *config);
    config->arena = arena_open();
    config->exec_limit_ms = options->exec_limit_ms ? options->exec_limit_ms : EXEC_LIMIT_MS;
    config->read_ms = now_ms;
    if (find_login(options, config->arena, &config->login, err) ||
        read_texts(&config->login, now_ms, &config->texts, err)) {
        kubeconfig_close(config);
        return -1;
    }
    *ret_config = config;
    return 0;
}

void kubeconfig_close(struct kubeconfig *config)
{
    if (!config)
        return;
    command_cancel(config->exec_run);
    free_texts(&config->texts);
    arena_close(config->credential_arena);
    arena_close(config->arena);
    free(config);
}

/* ---- use ---- */

const char *kubeconfig_server(const struct kubeconfig *config)
{
    return config->login.server;
}

const char *kubeconfig_namespace(const struct kubeconfig *config)
{
    return config->login.namespace_ ? config->login.namespace_ : "default";
}

int kubeconfig_refresh(struct kubeconfig *config, bool renew, int64_t now_ms, struct error *err)
{
    kubeconfig_follow(config, now_ms);
    /* The kubelet replaces a service account's token before its end; client-go reads the file each
     * minute, too. A file that cannot be read matters only if the login was refused. */
    bool old = now_ms - config->read_ms >= REREAD_MS || now_ms < config->read_ms;
    if ((renew || old) && !config->exec_run) {
        config->read_err.code = ERR_NONE;
        if (reread(config, now_ms, &config->read_err) && renew) {
            *err = config->read_err;
            return -1;
        }
    }
    return config->login.exec ? refresh_exec(config, renew, now_ms, err) : 0;
}

size_t kubeconfig_fds(const struct kubeconfig *config, struct pollfd *fds, int64_t *ret_left_ms)
{
    *ret_left_ms = config->exec_run ? command_left_ms(config->exec_run) : INT64_MAX;
    return config->exec_run ? command_fds(config->exec_run, fds) : 0;
}

void kubeconfig_follow(struct kubeconfig *config, int64_t now_ms)
{
    if (!config->exec_run || !command_has_finished(config->exec_run))
        return;
    take_credential(config, now_ms, &config->exec_err);
    config->exec_ms = now_ms;
}

const struct error *kubeconfig_failure(const struct kubeconfig *config)
{
    return config->read_err.code ? &config->read_err : &config->exec_err;
}

const char *kubeconfig_token(const struct kubeconfig *config)
{
    return config->login.exec ? config->credential.token : config->texts.token;
}

struct http_tls kubeconfig_tls(const struct kubeconfig *config)
{
    bool is_exec = config->login.exec != NULL;
    return (struct http_tls){
        .ca = config->texts.ca,
        .certificate = is_exec ? config->credential.certificate : config->texts.certificate,
        .key = is_exec ? config->credential.key : config->texts.key,
        .server_name = config->login.server_name,
    };
}

uint64_t kubeconfig_tls_version(const struct kubeconfig *config)
{
    return config->tls_version;
}
