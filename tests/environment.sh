# shellcheck shell=sh
# What every test program is run with, from the root of the tree: `. tests/environment.sh`.
export OMP_NUM_THREADS=1
export OMP_WAIT_POLICY=passive # several tests share the cores: a thread that waits must not keep one
# GCC 12 takes what lies before the thread-local data of a library that was opened late for its place and size, and the leak
# check then reads wherever that is: such data is left out of what it looks at.
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:intercept_tls_get_addr=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp history_size=4"
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"
