#include "agent/launch/device_choice.h"

#include "base/str.h"
#include "kernels/device.h"

#include <stdio.h>
#include <string.h>

enum { GPUS_MAX = 1024 };

/* N of "cuda:N". */
static bool is_numbered(const char *asked, int64_t *ret_number)
{
    return str_starts_with(asked, "cuda:") && str_to_i64(asked + 5, 0, GPUS_MAX, ret_number);
}

bool device_choice_is_valid(const char *asked)
{
    int64_t number;
    return strcmp(asked, "auto") == 0 || strcmp(asked, "cpu") == 0 || strcmp(asked, "cuda") == 0 ||
           is_numbered(asked, &number);
}

static int choose_gpu(const struct device_request *w, int64_t gpu, bool may_share,
                      struct device_choice *choice, struct error *err)
{
    if (gpu >= w->gpus)
        return error_set(err, ERR_UNSUPPORTED,
                         "runtime.device=%s: this process may see %d GPU%s, numbered from 0",
                         w->asked, w->gpus, w->gpus == 1 ? "" : "s");
    snprintf(choice->name, sizeof choice->name, "cuda:%d", (int)gpu);
    choice->may_share = may_share;
    return 0;
}

int device_choose(const struct device_request *w, struct device_choice *ret_choice,
                  struct error *err)
{
    int64_t number;
    *ret_choice = (struct device_choice){.name = "cpu"};
    if (strcmp(w->asked, "cpu") == 0)
        return 0;
    bool is_auto = strcmp(w->asked, "auto") == 0;
    if (w->gpus == 0 && is_auto && !w->is_unusable) {
        snprintf(ret_choice->notice, sizeof ret_choice->notice,
                 "the model runs on the CPU (--device cpu takes it unasked): %s", w->no_gpus);
        return 0;
    }
    if (w->gpus == 0)
        return error_set(err, ERR_UNSUPPORTED, "runtime.device=%s: %s%s", w->asked, w->no_gpus,
                         is_auto ? "; --device cpu trains without it" : "");
    if (is_numbered(w->asked, &number))
        return choose_gpu(w, number, true, ret_choice, err);
    /* As scripts do under torchrun: cuda:LOCAL_RANK. The communicator refuses ranks that share a
     * GPU unless that was asked for. */
    return choose_gpu(w, w->local_rank % w->gpus, w->share, ret_choice, err);
}

int device_choose_here(const char *asked, bool share, int local_rank,
                       struct device_choice *ret_choice, struct error *err)
{
    struct error no_gpus = {0};
    const struct device_request wish = {
        .asked = asked,
        .share = share,
        .local_rank = local_rank,
        .gpus = strcmp(asked, "cpu") == 0 ? 0 : device_count_gpus(&no_gpus),
        .no_gpus = no_gpus.msg,
        .is_unusable = no_gpus.code == ERR_UNSUPPORTED,
    };
    return device_choose(&wish, ret_choice, err);
}
