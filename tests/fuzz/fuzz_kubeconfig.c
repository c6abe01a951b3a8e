/* A kubeconfig's text to a login: whatever the bytes, there is a server, or a
 * message. */
#include "tests/fuzz/fuzz.h"

#include "base/mem.h"
#include "operator/kube/kubeconfig_file.h"

#include <assert.h>
#include <string.h>

static void check_source(const struct kubeconfig_source *source)
{
    assert(!source->path || !source->text);
    assert(!source->path || source->path[0] == '/');
}

static void check_login(const struct kubeconfig_login *login)
{
    assert(strncmp(login->server, "http", 4) == 0);
    assert(!login->exec || (login->exec->command[0] && !login->token.path && !login->token.text));
    check_source(&login->ca);
    check_source(&login->certificate);
    check_source(&login->key);
    check_source(&login->token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena *arena = arena_open();
    struct kubeconfig_file *files = NULL;
    struct kubeconfig_login login;
    struct error err = {0};
    if (kubeconfig_file_add(&files, (const char *)data, size, "/fuzz/config", arena, &err) == 0 &&
        kubeconfig_file_login(files, NULL, arena, &login, &err) == 0)
        check_login(&login);
    else
        assert(err.code != ERR_NONE && err.msg[0]);
    return 0;
}
