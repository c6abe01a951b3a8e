#include "agent/telemetry/gpu_poller.h"

#include "agent/telemetry/nvml.h"
#include "agent/telemetry/xid.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PAGE_MAX_BYTES = 512 * 1024,
    NAP_MS = 200,         /* the end is noticed within a nap */
    LAST_EVENTS_MAX = 64, /* looked for at the end */
    LOGGED_MAX = GPU_MAX * GPU_MAX_XIDS
};

struct gpu_poller {
    struct gpu_poller_setting setting;
    struct nvml *nvml;
    struct str text;
    struct {
        int gpu;
        uint64_t xid;
    } logged[LOGGED_MAX]; /* each once */
    int logged_count;
    struct gpu_sample first[GPU_MAX];
    bool has_first;
    struct gpu_slowdown slowdowns[GPU_MAX];
    int64_t read_ms;      /* when samples were read last */
    pthread_mutex_t lock; /* of the sign and of looks */
    pthread_cond_t looked;
    char sign[GPU_SIGN_BYTES]; /* "": none */
    int64_t looks;             /* at what GPUs have reported */
    pthread_t thread;
    bool runs;
    atomic_bool ends;
};

static void keep_sign(struct gpu_poller *p, const char *sign)
{
    pthread_mutex_lock(&p->lock);
    if (!p->sign[0])
        snprintf(p->sign, sizeof p->sign, "%s", sign);
    pthread_mutex_unlock(&p->lock);
}

static void compare_with_first(struct gpu_poller *p, const struct gpu_sample *gpus, int count)
{
    char sign[GPU_SIGN_BYTES];
    for (int i = 0; i < count && p->has_first; i++)
        if (gpu_hardware_memory(&p->first[i], &gpus[i], sign))
            keep_sign(p, sign);
    if (!p->has_first)
        memcpy(p->first, gpus, (size_t)count * sizeof *gpus);
    p->has_first = true;
}

/* What went by unseen counts for two intervals at most. */
static void look_at_slowdowns(struct gpu_poller *p, const struct gpu_sample *gpus, int count)
{
    char text[GPU_SLOWDOWN_BYTES];
    int64_t now_ms = clock_monotonic_ms(), passed_ms = p->read_ms ? now_ms - p->read_ms : 0;
    if (passed_ms > 2 * (int64_t)p->setting.interval_ms)
        passed_ms = 2 * (int64_t)p->setting.interval_ms;
    p->read_ms = now_ms;
    for (int i = 0; i < count; i++) {
        enum gpu_slowdown_news news =
            gpu_slowdown_look(&p->slowdowns[i], &gpus[i], passed_ms, p->setting.slowdown_ms);
        gpu_slowdown_describe(&gpus[i], text);
        if (news == GPU_SLOWDOWN_BEGINS)
            log_warning("%s", text);
        else if (news == GPU_SLOWDOWN_IS_OVER)
            log_info("%s", text);
    }
}

static void give_page(struct gpu_poller *p)
{
    struct gpu_sample gpus[GPU_MAX];
    int count = nvml_count(p->nvml);
    for (int i = 0; i < count; i++)
        nvml_read(p->nvml, i, &gpus[i]);
    compare_with_first(p, gpus, count);
    look_at_slowdowns(p, gpus, count);
    str_clear(&p->text);
    gpu_metrics_print(gpus, count, p->setting.names, &p->setting.labels, &p->text);
    p->setting.page(p->setting.ctx, str_text(&p->text), p->text.length);
}

/* Whether this GPU reports it for the first time. Past the limit nothing is new: the metric goes on
 * counting. */
static bool is_new(struct gpu_poller *p, int gpu, uint64_t xid)
{
    for (int i = 0; i < p->logged_count; i++)
        if (p->logged[i].gpu == gpu && p->logged[i].xid == xid)
            return false;
    if (p->logged_count == LOGGED_MAX)
        return false;
    p->logged[p->logged_count].gpu = gpu;
    p->logged[p->logged_count++].xid = xid;
    return true;
}

/* People look here first when a GPU's work has failed, and NVIDIA's pages are about these numbers.
 * An ill GPU may report the same again and again. */
static void log_xid(struct gpu_poller *p, int gpu, uint64_t number)
{
    const struct xid *xid = xid_find(number);
    if (gpu < 0 || !is_new(p, gpu, number))
        return;
    if (xid)
        log_warning("GPU %d reports Xid %" PRIu64 ": %s (%s): %s", gpu, number, xid->meaning,
                    xid->mnemonic, xid_action_text(xid->action));
    else
        log_warning("GPU %d reports Xid %" PRIu64
                    ": look it up at https://docs.nvidia.com/deploy/xid-errors",
                    gpu, number);
}

/* Waits until a GPU reports a critical error, but not longer; reports it. */
static bool look(struct gpu_poller *p, int timeout_ms)
{
    int gpu;
    uint64_t xid;
    char sign[GPU_SIGN_BYTES];
    bool is_ill = nvml_wait(p->nvml, timeout_ms, &gpu, &xid);
    if (is_ill)
        log_xid(p, gpu, xid);
    if (is_ill && gpu >= 0 && gpu_hardware_xid(gpu, xid, sign))
        keep_sign(p, sign);
    return is_ill;
}

/* Who ends because a GPU is ill may do so before it is seen that it reported that. */
static void look_last(struct gpu_poller *p)
{
    int seen = 0;
    while (seen < LAST_EVENTS_MAX && look(p, 0))
        seen++;
    if (seen)
        give_page(p);
}

/* Waits for a nap, or until a GPU reports a critical error. */
static bool nap(struct gpu_poller *p)
{
    if (nvml_has_events(p->nvml))
        return look(p, NAP_MS);
    nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
    return false;
}

static void count_look(struct gpu_poller *p)
{
    pthread_mutex_lock(&p->lock);
    p->looks++;
    pthread_cond_broadcast(&p->looked);
    pthread_mutex_unlock(&p->lock);
}

static void *run(void *ctx)
{
    struct gpu_poller *p = ctx;
    int64_t given_ms = clock_monotonic_ms();
    while (!atomic_load(&p->ends)) {
        bool is_ill = nap(p);
        count_look(p);
        int64_t now_ms = clock_monotonic_ms();
        if (!is_ill && now_ms - given_ms < p->setting.interval_ms)
            continue;
        give_page(p);
        given_ms = now_ms;
    }
    look_last(p);
    return NULL;
}

int gpu_poller_open(struct gpu_poller **ret_poller, const struct gpu_poller_setting *setting,
                    struct error *err)
{
    struct nvml *nvml;
    if (nvml_open(setting->pci, setting->gpus, &nvml, err) < 0)
        return -1;
    struct gpu_poller *p = xcalloc(1, sizeof *p);
    p->setting = *setting;
    p->setting.labels.driver = nvml_driver(nvml);
    p->nvml = nvml;
    str_init(&p->text, PAGE_MAX_BYTES);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->looked, NULL);
    give_page(p);
    int failure = pthread_create(&p->thread, NULL, run, p);
    if (failure) {
        error_set(err, ERR_IO, "a thread to read GPUs with: %s", strerror(failure));
        gpu_poller_close(p);
        return -1;
    }
    p->runs = true;
    *ret_poller = p;
    return 0;
}

bool gpu_poller_sign(struct gpu_poller *p, char ret_sign[GPU_SIGN_BYTES])
{
    pthread_mutex_lock(&p->lock);
    memcpy(ret_sign, p->sign, GPU_SIGN_BYTES);
    pthread_mutex_unlock(&p->lock);
    return ret_sign[0] != '\0';
}

/* The look under way may have begun before what is waited for: the one after it has not. Each that
 * finds something is followed by another at once. */
void gpu_poller_look(struct gpu_poller *p, int timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L)
        until.tv_sec++, until.tv_nsec -= 1000000000L;
    pthread_mutex_lock(&p->lock);
    int64_t enough = p->looks + 2;
    while (p->looks < enough && !p->sign[0] &&
           pthread_cond_timedwait(&p->looked, &p->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&p->lock);
}

void gpu_poller_close(struct gpu_poller *p)
{
    if (!p)
        return;
    atomic_store(&p->ends, true);
    if (p->runs)
        pthread_join(p->thread, NULL);
    nvml_close(p->nvml);
    pthread_cond_destroy(&p->looked);
    pthread_mutex_destroy(&p->lock);
    str_free(&p->text);
    free(p);
}
