/* Crash reports: a process that a fault kills writes on stderr where it was. */
#ifndef SHOAL_AGENT_LAUNCH_CRASH_H
#define SHOAL_AGENT_LAUNCH_CRASH_H

/* From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT are reported: a line with the signal and
 * the rank, then the call stack as program(+OFFSET), which addr2line -e PROGRAM turns into source
 * lines. The same signal then ends the process. For the main thread the handler has a stack of its
 * own, so that a stack overflow is reported, too. If a mapped file lost bytes (SIGBUS), another
 * line names the file. A signal that has a handler already, of a sanitizer say, keeps it. */
void crash_install_handlers(int rank);
#endif
