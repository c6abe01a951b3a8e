/* What a process says when it dies of its own fault: where it was, on stderr. */
#ifndef SHOAL_AGENT_CRASH_H
#define SHOAL_AGENT_CRASH_H

#ifdef __cplusplus
extern "C" {
#endif

/* From here on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT write a line that names the signal and
 * the rank, then the calls that led there (program(+OFFSET), which addr2line -e PROGRAM turns into
 * a line of source), and end the process by the same signal as they would have anyway. On a stack
 * of its own where the main thread's is used up. For a SIGBUS that a file caused, which lost bytes
 * while it was mapped, a line before names the file. A signal that somebody handles already (a
 * sanitizer, say) is left alone. */
void crash_listen(int rank);

#ifdef __cplusplus
}
#endif
#endif
