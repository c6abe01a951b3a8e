#include "operator/kube/kubeconfig_exec.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>

struct answer {
    const char *kind, *api_version;
    bool has_status;
    struct exec_credential credential;
};

static void read_expiry(struct json_reader *reader, const struct json *value, void *field)
{
    const char *text = json_read_text(reader, value);
    if (text && !clock_parse_rfc3339(text, field))
        json_problem(reader, "must be a time such as 2026-01-31T12:00:00Z, not \"%.40s\"", text);
}

static const struct json_field status_fields[] = {
    JSON_TEXT("token", struct exec_credential, token),
    JSON_TEXT("clientCertificateData", struct exec_credential, certificate),
    JSON_TEXT("clientKeyData", struct exec_credential, key),
    JSON_CUSTOM("expirationTimestamp", struct exec_credential, expires_ms, read_expiry),
    JSON_END,
};

static const struct json_field answer_fields[] = {
    JSON_TEXT("kind", struct answer, kind),
    JSON_TEXT("apiVersion", struct answer, api_version),
    JSON_OPTIONAL_PART("status", struct answer, credential, has_status, status_fields),
    JSON_END,
};

static const char *or_none(const char *text)
{
    return text ? text : "";
}

/* The rules of client-go's credential plugins: the plugin answers in the API version that the
 * kubeconfig names, with a token, a certificate with its key, or all of them. */
static int check(const struct answer *answer, const char *api_version, struct error *err)
{
    const struct exec_credential *credential = &answer->credential;
    if (strcmp(or_none(answer->kind), "ExecCredential") != 0)
        return error_set(err, ERR_INPUT, "kind: is \"%.60s\", must be ExecCredential",
                         or_none(answer->kind));
    if (strcmp(or_none(answer->api_version), api_version) != 0)
        return error_set(err, ERR_INPUT, "apiVersion: is \"%.60s\", must be %s as configured",
                         or_none(answer->api_version), api_version);
    if (!answer->has_status || (!credential->token && !credential->certificate))
        return error_set(err, ERR_INPUT,
                         "status: neither token nor clientCertificateData and clientKeyData in it");
    if (!credential->certificate != !credential->key)
        return error_set(err, ERR_INPUT, "status.%s: missing",
                         credential->key ? "clientCertificateData" : "clientKeyData");
    return 0;
}

int kubeconfig_exec_decode(const char *text, size_t bytes, const char *api_version,
                           struct arena *arena, struct exec_credential *ret_credential,
                           struct error *err)
{
    struct json *json = json_parse(text, bytes, JSON_STRICT, NULL);
    if (!json_is_object(json)) {
        json_free(json);
        /* what it is instead is not said: it may be the secret itself */
        return error_set(err, ERR_INPUT, "no JSON object");
    }
    struct lines problems;
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems};
    struct answer answer = {.credential = {.expires_ms = INT64_MAX}};
    json_read(&reader, json, answer_fields, &answer);
    json_free(json);
    if (problems.count)
        return error_set(err, ERR_INPUT, "%s", lines_join(&problems));
    if (check(&answer, api_version, err))
        return -1;
    *ret_credential = answer.credential;
    return 0;
}

static struct json *cluster_info(const struct kubeconfig_login *login, const char *ca)
{
    struct json *cluster =
        json_texts_of("server", login->server, "tls-server-name", login->server_name, NULL);
    if (ca) {
        size_t bytes = strlen(ca);
        auto_free char *text = xmalloc(bytes / 3 * 4 + 8);
        EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)ca, (int)bytes);
        json_set(cluster, "certificate-authority-data", json_new_text(text));
    }
    return cluster;
}

const char *kubeconfig_exec_info(const struct kubeconfig_login *login, const char *ca,
                                 struct arena *arena)
{
    struct json *info =
        json_texts_of("apiVersion", login->exec->api_version, "kind", "ExecCredential", NULL);
    struct json *spec = json_object_of("interactive", json_new_bool(false), NULL);
    if (login->exec->provide_cluster_info)
        json_set(spec, "cluster", cluster_info(login, ca));
    json_set(info, "spec", spec);
    auto_free char *text = json_print(info, JSON_COMPACT);
    json_free(info);
    return arena_strdup(arena, text);
}

/* Ours, with the plugin's variables in place of those of the same names. */
static const char *const *environment(const struct kubeconfig_exec *exec, const char *info,
                                      struct arena *arena)
{
    size_t ours = 0, count = 0;
    while (environ[ours])
        ours++;
    const char **env = arena_array(arena, const char *, ours + exec->env_count + 2);
    for (size_t i = 0; i < exec->env_count; i++)
        env[count++] = arena_printf(arena, "%s=%s", exec->env[i].name, or_none(exec->env[i].value));
    env[count++] = arena_printf(arena, "KUBERNETES_EXEC_INFO=%s", info);
    /* getenv() returns the first of two equal names, so each name stands in the list once. */
    size_t set = count;
    for (size_t i = 0; i < ours; i++) {
        size_t name_bytes = strcspn(environ[i], "=") + 1, j = 0;
        while (j < set && strncmp(env[j], environ[i], name_bytes) != 0)
            j++;
        if (j == set)
            env[count++] = environ[i];
    }
    return env;
}

int kubeconfig_exec_start(struct command_run **ret_run, const struct kubeconfig_login *login,
                          const char *ca, int64_t limit_ms, struct error *err)
{
    const struct kubeconfig_exec *exec = login->exec;
    assert(exec);
    auto_arena struct arena *arena = arena_open();
    const char **argv = arena_array(arena, const char *, exec->arg_count + 2);
    argv[0] = exec->command;
    for (size_t i = 0; i < exec->arg_count; i++)
        argv[i + 1] = exec->args[i];
    struct command command = {.argv = argv,
                              .env =
                                  environment(exec, kubeconfig_exec_info(login, ca, arena), arena),
                              .limit_ms = limit_ms};
    if (command_start(ret_run, &command, err) == 0)
        return 0;
    if (err->code == ERR_NOT_FOUND && exec->install_hint)
        error_set(err, ERR_NOT_FOUND, "%s: not found: %.300s", exec->command, exec->install_hint);
    return error_wrap(err, "%s", exec->what);
}

int kubeconfig_exec_finish(struct command_run *run, const struct kubeconfig_exec *exec,
                           struct arena *arena, struct exec_credential *ret_credential,
                           struct error *err)
{
    auto_free char *output = NULL;
    size_t bytes;
    if (command_finish(run, &output, &bytes, err))
        return error_wrap(err, "%s", exec->what);
    if (kubeconfig_exec_decode(output, bytes, exec->api_version, arena, ret_credential, err))
        return error_wrap(err, "%s: %s printed", exec->what, exec->command);
    return 0;
}
