/* The table of Xids, and docs/xid.md, which is made of it: test_xid --page > docs/xid.md. */
#include "agent/telemetry/xid.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

static void print_page(struct str *out)
{
    str_add(
        out,
        "# Xids: the errors that NVIDIA's driver reports\n"
        "\n"
        "An agent on GPUs logs each Xid of a GPU once, with what it means and what to do. It "
        "counts all of them in\n"
        "`fsdp_gpu_xid_errors_total{xid}` ([monitoring.md](monitoring.md#gpus)).\n"
        "\n"
        "    GPU 3 reports Xid 62: internal micro-controller halt (PMU_HALT_ERROR): reset the GPU "
        "before it is used again\n"
        "\n"
        "NVIDIA's catalog says what to do at once, for Ampere and newer: "
        "[Xids](https://docs.nvidia.com/deploy/xid-errors/).\n"
        "The meanings are Shoal's words. For a number that is not here, the log has the "
        "catalog's address.\n"
        "\n"
        "| Xid | NVIDIA's mnemonic | meaning | what to do at once |\n"
        "| --- | --- | --- | --- |\n");
    for (int i = 0; xid_at(i); i++) {
        const struct xid *xid = xid_at(i);
        str_printf(out, "| %llu | `%s` | %s | %s |\n", (unsigned long long)xid->number,
                   xid->mnemonic, xid->meaning, xid_action_text(xid->action));
    }
    str_add(out, "\nThis page is made of `agent/telemetry/xid.c`.\n");
}

static void rows_are_in_order_and_whole(void **state)
{
    (void)state;
    uint64_t before = 0;
    int actions[XID_ACTIONS] = {0};
    for (int i = 0; xid_at(i); i++) {
        const struct xid *xid = xid_at(i);
        assert_true(xid->number > before);
        before = xid->number;
        assert_ptr_equal(xid_find(xid->number), xid);
        assert_true(xid->mnemonic[0] && xid->meaning[0]);
        assert_in_range(xid->action, 0, XID_ACTIONS - 1);
        actions[xid->action]++;
    }
    for (int action = 0; action < XID_ACTIONS; action++)
        assert_true(actions[action] > 0);
    assert_null(xid_at(-1));
}

/* One of each, as the catalog has them. */
static void the_catalog_s_actions(void **state)
{
    (void)state;
    static const struct {
        uint64_t number;
        const char *mnemonic, *action;
    } rows[] = {
        {13, "ROBUST_CHANNEL_GR_EXCEPTION", "restart the application"},
        {43, "ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR", "the GPU needs no action"},
        {45, "ROBUST_CHANNEL_PREEMPTIVE_REMOVAL",
         "another Xid or a subcode in the node's kernel log says what to do"},
        {79, "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "restart the machine"},
        {94, "ROBUST_CHANNEL_CONTAINED_ERROR", "restart the application"},
        {95, "ROBUST_CHANNEL_UNCONTAINED_ERROR", "reset the GPU before it is used again"},
        {119, "GSP_RPC_TIMEOUT", "reset the GPU before it is used again"},
        {135, "ROBUST_CHANNEL_CE19_ERROR", "restart the application"},
        {142, "ROBUST_CHANNEL_NVENC3_ERROR", "have the machine checked, contact support"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct xid *xid = xid_find(rows[i].number);
        assert_non_null(xid);
        assert_string_equal(xid->mnemonic, rows[i].mnemonic);
        assert_string_equal(xid_action_text(xid->action), rows[i].action);
    }
    static const uint64_t unknown[] = {0, 1, 78, 108, 162, 173, UINT64_MAX};
    for (size_t i = 0; i < array_length(unknown); i++)
        assert_null(xid_find(unknown[i]));
}

static void the_page_in_the_tree_is_what_the_table_makes(void **state)
{
    (void)state;
    auto_free char *page = NULL;
    size_t bytes;
    struct error err;
    auto_str struct str made;
    str_init(&made, 1 << 16);
    print_page(&made);
    assert_ok(file_read("docs/xid.md", 1 << 20, &page, &bytes, &err), &err);
    if (bytes != made.length || memcmp(page, str_text(&made), bytes) != 0)
        fail_msg("make it anew: build/debug/tests/agent/test_xid --page > docs/xid.md");
}

/* "46|48|...", of those that are hardware and those that need no action. */
static void numbers_of(bool hardware, bool ignored, struct str *out)
{
    for (int i = 0; xid_at(i); i++) {
        enum xid_action action = xid_at(i)->action;
        if ((hardware && xid_is_hardware(action)) || (ignored && action == XID_IGNORE))
            str_printf(out, "%s%llu", out->length ? "|" : "",
                       (unsigned long long)xid_at(i)->number);
    }
}

static void alerts_tell_hardware_from_the_rest(void **state)
{
    (void)state;
    auto_free char *rules = NULL;
    size_t bytes;
    struct error err;
    auto_str struct str hardware, ignored;
    str_init(&hardware, 4096);
    str_init(&ignored, 4096);
    numbers_of(true, false, &hardware);
    numbers_of(false, true, &ignored);
    assert_ok(file_read("deploy/monitoring/rules.yaml", 1 << 20, &rules, &bytes, &err), &err);
    static const char *const labels[] = {"xid", "err_code"};
    for (size_t i = 0; i < array_length(labels); i++) {
        auto_free char *critical = xasprintf("%s=~\"%s\"}", labels[i], str_text(&hardware));
        auto_free char *warning =
            xasprintf("%s!~\"%s|%s\"}", labels[i], str_text(&hardware), str_text(&ignored));
        assert_non_null(strstr(rules, critical));
        assert_non_null(strstr(rules, warning));
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--page") == 0) {
        auto_str struct str page;
        str_init(&page, 1 << 16);
        print_page(&page);
        return fputs(str_text(&page), stdout) < 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_in_order_and_whole),
        cmocka_unit_test(the_catalog_s_actions),
        cmocka_unit_test(alerts_tell_hardware_from_the_rest),
        cmocka_unit_test(the_page_in_the_tree_is_what_the_table_makes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
