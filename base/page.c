#include "base/page.h"

#include "base/httpd.h"
#include "base/mem.h"

#include <stddef.h>

/* The file's bytes, as part of the program. The Makefile knows that this depends on them. */
#define FILE_BYTES(name, file)                                                                     \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global page_" #name "\n"                                                             \
            "page_" #name ":\n"                                                                    \
            ".incbin \"base/page/" file "\"\n"                                                     \
            ".global page_" #name "_end\n"                                                         \
            "page_" #name "_end:\n"                                                                \
            ".popsection\n");                                                                      \
    extern const char page_##name[], page_##name##_end[]

FILE_BYTES(index, "index.html");
FILE_BYTES(icon, "icon.svg");
FILE_BYTES(style, "page.css");
FILE_BYTES(main, "main.js");
FILE_BYTES(table, "table.js");
FILE_BYTES(job, "job.js");
FILE_BYTES(chart, "chart.js");
FILE_BYTES(text, "text.js");

void page_publish(struct httpd *httpd)
{
    static const char script[] = "text/javascript; charset=utf-8";
    const struct {
        const char *path, *type, *start, *end;
    } files[] = {
        {"/", "text/html; charset=utf-8", page_index, page_index_end},
        {"/page/page.css", "text/css; charset=utf-8", page_style, page_style_end},
        {"/page/icon.svg", "image/svg+xml", page_icon, page_icon_end},
        {"/page/main.js", script, page_main, page_main_end},
        {"/page/table.js", script, page_table, page_table_end},
        {"/page/job.js", script, page_job, page_job_end},
        {"/page/chart.js", script, page_chart, page_chart_end},
        {"/page/text.js", script, page_text, page_text_end},
    };
    for (size_t i = 0; i < array_length(files); i++)
        httpd_publish(httpd, files[i].path, 200, files[i].type, files[i].start,
                      (size_t)(files[i].end - files[i].start));
}
