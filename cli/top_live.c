#include "cli/top_live.h"

#include <poll.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/terminal.h"
#include "cli/top_screen.h"

#define SCREEN_ON  "\033[?1049h\033[?25l" /* the other screen, without a cursor (xterm's) */
#define SCREEN_OFF "\033[?25h\033[?1049l"
#define HOME       "\033[H"
#define END_LINE   "\033[K\n"
#define END_SCREEN "\033[J"

enum { SCREEN_MAX_BYTES = 1 << 20, DRAW_EVERY_MS = 1000, NO_KEY = -1 };

struct top_live {
    const struct top_source *source;
    struct top_screen screen;
    struct arena *arena; /* of the jobs that are shown */
    struct error err;    /* of the last reading */
    int64_t interval_ms, due_ms;
    int stop_fd;
    bool has_keys; /* stdin is a terminal, and it is in `raw` */
    struct termios cooked;
    bool is_over;
};

/* ---- the terminal ---- */

static void begin(struct top_live *live)
{
    live->has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &live->cooked) == 0;
    if (live->has_keys) {
        struct termios raw = live->cooked;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_lflag |= NOFLSH; /* else Ctrl-C may throw away SCREEN_OFF, which answers it */
        /* who suspends it would find this screen, and so would whom it dumped its core for */
        raw.c_cc[VSUSP] = raw.c_cc[VQUIT] = _POSIX_VDISABLE;
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    fputs(SCREEN_ON, stdout);
    fflush(stdout);
}

static void end(struct top_live *live)
{
    fputs(SCREEN_OFF, stdout);
    fflush(stdout);
    if (live->has_keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &live->cooked);
}

static void draw(struct top_live *live)
{
    int columns = 80, rows = 24;
    terminal_window(STDOUT_FILENO, &columns, &rows);
    auto_str struct str text;
    str_init(&text, SCREEN_MAX_BYTES);
    top_screen_render(&live->screen, columns, rows, clock_now_ms(), &text);
    fputs(HOME, stdout);
    for (const char *c = str_text(&text); *c; c++)
        if (*c == '\n')
            fputs(END_LINE, stdout);
        else
            putchar(*c);
    fputs(END_SCREEN, stdout);
    fflush(stdout);
}

/* ---- one turn ---- */

static int read_jobs(struct top_live *live)
{
    struct arena *arena = arena_open();
    struct job_table table = live->screen.table;
    int result = live->source->read(live->source->context, arena, &table, &live->err);
    live->due_ms = clock_monotonic_ms() + live->interval_ms;
    live->screen.trouble = result < 0 ? live->err.msg : NULL;
    if (result < 0) {
        arena_close(arena);
        return -1;
    }
    arena_close(live->arena);
    live->arena = arena;
    live->screen.table = table;
    live->screen.read_ms = clock_now_ms();
    return 0;
}

static void take_key(struct top_live *live)
{
    unsigned char key;
    ssize_t count = read(STDIN_FILENO, &key, 1);
    if (count <= 0) /* nobody is there any more */
        live->is_over = true;
    else if (key == 'q' || key == 'Q')
        live->is_over = true;
    else if (key == 's' || key == 'S')
        live->screen.table.sort = (live->screen.table.sort + 1) % JOB_SORTS;
    else if (key == 'r' || key == 'R')
        live->screen.table.reverse = !live->screen.table.reverse;
}

/* For a key, the end or the next thing to do. */
static void wait_for_events(struct top_live *live)
{
    struct pollfd fds[] = {{.fd = live->stop_fd, .events = POLLIN},
                           {.fd = live->has_keys ? STDIN_FILENO : NO_KEY, .events = POLLIN}};
    int64_t left_ms = clock_until_ms(live->due_ms, clock_monotonic_ms());
    if (poll(fds, 2, (int)(left_ms < DRAW_EVERY_MS ? left_ms : DRAW_EVERY_MS)) <= 0)
        return; /* the size of the window may have changed */
    if (fds[0].revents)
        live->is_over = true;
    else if (fds[1].revents)
        take_key(live);
}

int top_live_run(const struct top_source *source, struct job_table table, int64_t interval_ms,
                 int stop_fd, struct error *err)
{
    struct top_live live = {.source = source,
                            .screen = {.source = source->name, .table = table},
                            .interval_ms = interval_ms,
                            .stop_fd = stop_fd};
    if (read_jobs(&live) < 0) {
        *err = live.err;
        return err->code == ERR_CANCELLED ? 0 : -1;
    }
    begin(&live);
    while (!live.is_over) {
        draw(&live);
        wait_for_events(&live);
        if (!live.is_over && clock_monotonic_ms() >= live.due_ms && read_jobs(&live) < 0)
            live.is_over = live.err.code == ERR_CANCELLED;
    }
    end(&live);
    arena_close(live.arena);
    return 0;
}
