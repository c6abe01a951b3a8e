#include "agent/models/model.h"

const char *model_task_name(enum model_task task)
{
    static const char *const names[] = {
#define MODEL_TASK_NAME(task, head) head
#define COMMA                       ,
        MODEL_TASKS(MODEL_TASK_NAME, COMMA)
#undef COMMA
#undef MODEL_TASK_NAME
    };
    return names[task];
}

void model_shift_right(int32_t *ret_tokens, const int32_t *labels, int64_t rows, int64_t T,
                       int32_t start_id, int32_t pad_id)
{
    for (int64_t i = 0; i < rows * T; i++) {
        int32_t before = i % T == 0 ? start_id : labels[i - 1];
        ret_tokens[i] = before < 0 ? pad_id : before;
    }
}
