#include "operator/program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/resident.h"
#include "base/signals.h"
#include "operator/board/board.h"
#include "operator/controller.h"
#include "operator/job/resources.h"
#include "operator/kube/kubeconfig.h"
#include "operator/leader/leader.h"
#include "operator/live_page.h"
#include "operator/manifest/init_template.h"
#include "operator/progress/asker.h"
#include "operator/serve.h"

enum {
    /* A page of a list; one that is larger is asked for again with half as many objects. Read, it
     * takes three times as much, and deploy/ gives 512 MiB in all. */
    HTTP_BODY_MAX_BYTES = 8 << 20,
    HTTP_LINE_MAX_BYTES = 4 << 20, /* one object: etcd takes 1.5 MiB */
    HTTP_IN_FLIGHT_MAX = 64,
    CONNECT_TIMEOUT_MS = 10 * 1000,
    REQUEST_TIMEOUT_MS = 30 * 1000,
    REQUEST_GIVE_UP_MS = 60 * 1000,
    PUBLISH_EVERY_MS = 1000,
    RELEASE_WITHIN_MS = 3 * 1000, /* of the Lease, on the way out */
    TRIM_BYTES = 256 << 10,       /* given back when so much can be */
};

struct program {
    struct operator_config config;
    struct signals signals;
    struct http *http;
    struct kubeconfig *kubeconfig;
    struct kube *kube;
    struct init_template *init;
    struct leader *leader; /* NULL: no election, we lead */
    struct controller *controller;
    struct serve *serve;
    struct board *board; /* NULL, as is the page: nobody can look at it */
    struct live_page *page;
    char identity[LEASE_MAX_HOLDER];
    uint64_t seed;
    int64_t start_ms, published_ms;
    bool was_ready, was_leading;   /* as last published */
    int64_t spare_bytes;           /* resident and in no use, after the last trim */
    bool led;                      /* as last reported */
    enum error_code login_failure; /* likewise */
};

static int open_client(struct program *p, struct error *err)
{
    const struct http_options http = {
        .max_body_bytes = HTTP_BODY_MAX_BYTES,
        .max_line_bytes = HTTP_LINE_MAX_BYTES,
        .max_in_flight = HTTP_IN_FLIGHT_MAX + ASKER_IN_FLIGHT_MAX,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
    };
    const struct kubeconfig_options who = {.path = p->config.kubeconfig,
                                           .context = p->config.context};
    const struct kube_options kube = {
        .timeout_ms = REQUEST_TIMEOUT_MS,
        .give_up_ms = REQUEST_GIVE_UP_MS,
        .backoff_first_ms = 100,
        .backoff_max_ms = 5000,
        .seed = p->seed,
        .user_agent = FIELD_MANAGER "/" SHOAL_VERSION,
    };
    if (http_open(&p->http, &http, err) < 0 ||
        kubeconfig_open(&p->kubeconfig, &who, p->start_ms, err) < 0)
        return -1;
    p->kube = kube_open(p->http, p->kubeconfig, &kube);
    return 0;
}

static bool may_write(void *context)
{
    const struct program *p = context;
    return leader_is_held(p->leader);
}

static void open_leader(struct program *p)
{
    struct leader_options options = {
        .namespace_ = p->config.own_namespace,
        .name = p->config.leader_election_id,
        .lease = {.duration_ms = 15000,
                  .renew_deadline_ms = 10000,
                  .retry_ms = 2000,
                  .seed = p->seed},
    };
    snprintf(p->identity, sizeof p->identity, "%s_%016" PRIx64, p->config.own_name,
             p->seed); /* of this process and no other, ever */
    memcpy(options.lease.identity, p->identity, sizeof p->identity);
    p->leader = leader_open(p->kube, &options, &clocks_system);
    kube_guard(p->kube, may_write, p);
}

/* At "0" nobody looks, and nothing is kept for it. Jobs need no page: where nobody asked for one,
 * that its port is taken, as by another operator of a machine, is no failure. */
static int open_page(struct program *p, struct error *err)
{
    const char *address = p->config.ui_bind_address;
    p->board = board_open(&clocks_system);
    if (live_page_open(&p->page, address ? address : UI_BIND_ADDRESS, p->board, err) < 0) {
        if (address)
            return -1;
        log_warning("there is no live page: %s", err->msg);
    }
    if (!p->page)
        board_close(take(p->board));
    board_set_namespace(p->board, p->config.own_namespace);
    return 0;
}

static void open_controller(struct program *p)
{
    const char *scheduler = p->config.gang_scheduler_name;
    struct gang gang = {.scheduler_name = scheduler};
    if (scheduler)
        gang.scheduler = strcasecmp(scheduler, "volcano") ? GANG_PLUGINS : GANG_VOLCANO;
    const struct controller_options options = {
        .namespace_ = p->config.namespace_,
        .default_backoff_limit = p->config.default_backoff_limit,
        .watch_nodes = p->config.watch_nodes,
        .kueue = p->config.kueue,
        .signs = p->config.signs,
        .reconcile = {.gang = gang,
                      .node_lost_ms = p->config.node_lost_s * 1000,
                      .overdue_ms = p->config.overdue_s * 1000,
                      .avoid_node_ms = p->config.avoid_node_s * 1000},
        .pod = {.gang = gang},
        .board = p->board,
        .init = p->init,
        .ask_by = p->http,
        .ask_interval_ms = p->config.progress_s * 1000,
        .ask_timeout_ms = ASKER_TIMEOUT_MS,
        .seed = p->seed,
        .clocks = &clocks_system,
    };
    p->controller = controller_open(p->kube, &options);
}

int program_open(struct program **ret_program, const struct operator_config *config,
                 struct error *err)
{
    struct program *p = xcalloc(1, sizeof *p);
    *ret_program = p;
    p->config = *config;
    p->signals = (struct signals){-1, -1};
    p->start_ms = clock_now_ms();
    p->spare_bytes = -TRIM_BYTES; /* the first look trims, be it only code that the start needed */
    if (getrandom(&p->seed, sizeof p->seed, 0) != sizeof p->seed)
        return error_errno(err, errno, "getrandom");
    const struct init_options init = {.path = p->config.init_template_file,
                                      .image = p->config.init_image,
                                      .max_tries = p->config.init_max_tries};
    if (signals_open(&p->signals, err) < 0 || init_template_open(&p->init, &init, err) < 0 ||
        serve_open(&p->serve, &p->config, err) < 0 || open_page(p, err) < 0 ||
        open_client(p, err) < 0)
        return -1;
    if (p->config.leader_elect)
        open_leader(p);
    open_controller(p);
    return 0;
}

void program_close(struct program *p)
{
    if (!p)
        return;
    serve_close(p->serve); /* tells of the controller's numbers */
    controller_close(p->controller);
    leader_close(p->leader);
    kube_close(p->kube);
    kubeconfig_close(p->kubeconfig);
    http_close(p->http);
    live_page_close(p->page);
    board_close(p->board);
    init_template_close(p->init);
    signals_close(&p->signals);
    free(p);
}

/* What the start or a wave of jobs needed is given back: the process may be idle for days. */
static void trim(struct program *p)
{
    if (resident_spare_bytes() < p->spare_bytes + TRIM_BYTES)
        return;
    mem_trim();
    p->spare_bytes = resident_spare_bytes();
}

/* The pod that leads: its identity without what tells its processes apart. */
static void show(struct program *p, bool leading, size_t jobs)
{
    char leader[LEASE_MAX_HOLDER];
    snprintf(leader, sizeof leader, "%s", leading ? p->identity : leader_holder(p->leader));
    char *end = strrchr(leader, '_');
    if (end)
        *end = '\0';
    board_set_operator(p->board, leading, leader, jobs);
    live_page_send(p->page, clock_monotonic_ms());
}

/* Now and then, and whenever readiness or leadership has changed. */
static void publish(struct program *p, bool leading)
{
    int64_t now_ms = clock_monotonic_ms();
    bool ready = controller_is_ready(p->controller);
    if (p->published_ms && ready == p->was_ready && leading == p->was_leading &&
        now_ms - p->published_ms < PUBLISH_EVERY_MS)
        return;
    p->published_ms = now_ms;
    if (p->was_ready)
        trim(p);
    p->was_ready = ready;
    p->was_leading = leading;
    struct metrics_view view = {
        .leading = leading, .resident_bytes = resident_bytes(), .start_ms = p->start_ms};
    controller_view(p->controller, &view);
    serve_publish(p->serve, controller_metrics(p->controller), &view);
    show(p, leading, view.jobs);
}

static void log_leading(struct program *p, bool leading)
{
    if (leading == p->led)
        return;
    p->led = leading;
    if (leading)
        log_info("leading");
    else if (!strcmp(leader_holder(p->leader), p->identity))
        log_info("not leading: the lease was not renewed in time");
    else
        log_info("not leading: %s holds the lease", leader_holder(p->leader));
}

static void log_lease_failure(struct program *p)
{
    const char *failure = leader_new_failure(p->leader);
    if (failure)
        log_warning("leader election: %s", failure);
}

/* Once, not with every try. The old credentials may be good for a while. */
static void log_login_failure(struct program *p)
{
    const struct error *failure = kubeconfig_failure(p->kubeconfig);
    if (failure->code != p->login_failure && failure->code != ERR_NONE)
        log_warning("the credentials cannot be renewed: %s", failure->msg);
    p->login_failure = failure->code;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* All that can be done now. Returns how long nothing will have to be done unless something is
 * heard. */
static int64_t run_once(struct program *p)
{
    int64_t due_ms, delay_ms = PUBLISH_EVERY_MS;
    kube_tick(p->kube, clock_now_ms(), &due_ms);
    log_login_failure(p);
    if (p->leader) {
        delay_ms = least(delay_ms, leader_tick(p->leader));
        log_lease_failure(p);
    }
    bool leading = !p->leader || leader_is_held(p->leader);
    log_leading(p, leading);
    delay_ms = least(delay_ms, controller_run_once(p->controller, leading));
    kube_tick(p->kube, clock_now_ms(), &due_ms);
    delay_ms = least(delay_ms, clock_until_ms(due_ms, clock_now_ms()));
    publish(p, leading);
    return delay_ms;
}

/* Waits for what is heard, a signal or the end of delay_ms. Returns the signal or 0. */
static int wait_for_events(struct program *p, int64_t delay_ms, int *ret_result, struct error *err)
{
    struct pollfd fds[1 + COMMAND_FDS_MAX] = {{.fd = p->signals.stop_fd, .events = POLLIN}};
    int64_t left_ms;
    size_t count = 1 + kube_fds(p->kube, fds + 1, &left_ms);
    *ret_result = http_poll(p->http, fds, count, (int)least(delay_ms, left_ms), err);
    return *ret_result == 0 && fds[0].revents ? signals_take(p->signals.stop_fd) : 0;
}

/* Gives the lease back, so that the next leader need not wait for its end. */
static void release(struct program *p)
{
    struct error err;
    int64_t end_ms = clock_monotonic_ms() + RELEASE_WITHIN_MS;
    leader_release(p->leader);
    while (!leader_is_over(p->leader) && clock_monotonic_ms() < end_ms) {
        int64_t due_ms;
        kube_tick(p->kube, clock_now_ms(), &due_ms);
        if (http_poll(p->http, NULL, 0, (int)least(leader_tick(p->leader), 100), &err) < 0)
            return;
    }
}

int program_run(struct program *p, struct error *err)
{
    int signal = 0, result = 0;
    log_info("shoal-operator %s: %s, %s", SHOAL_VERSION, kubeconfig_server(p->kubeconfig),
             p->config.namespace_ ? p->config.namespace_ : "all namespaces");
    for (int i = 0; i < p->config.ignored.count; i++)
        log_info("--%s is ignored: shoal-operator has no such setting", p->config.ignored.items[i]);
    for (int i = 0; i < p->config.schemes.count; i++)
        if (!operator_config_runs_scheme(p->config.schemes.items[i]))
            log_warning("--enable-scheme=%s: shoal-operator runs PyTorchJobs alone, not these jobs",
                        p->config.schemes.items[i]);
    while (result == 0 && !signal)
        signal = wait_for_events(p, run_once(p), &result, err);
    controller_run_once(p->controller, false);
    if (p->leader)
        release(p);
    if (signal)
        log_info("stopped by %s", strsignal(signal));
    return result;
}
