/* Says whether a GPU can be used: "GPU 0: 79 of 80 GiB free", exit code 0; or why not, exit
 * code 77. */
#include "kernels/device.h"

#include <stdio.h>

int main(void)
{
    struct error err;
    struct device *device;
    int count = device_count_gpus(&err);
    if (!count) {
        printf("no GPU: %s\n", err.msg);
        return 77;
    }
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "cuda:%d", i);
        if (device_open(name, 1, &device, &err) < 0) {
            printf("GPU %d: %s\n", i, err.msg);
            return 1;
        }
        int64_t total, left = device_memory_free_bytes(device, &total);
        printf("GPU %d: %.1f of %.1f GiB free\n", i, (double)left / 0x1p30, (double)total / 0x1p30);
        device_close(device);
    }
    return 0;
}
