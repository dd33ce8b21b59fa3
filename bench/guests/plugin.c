/* Reads a key as often as its arguments say, and then asks a person. */
#include "toolgate.h"

static yyjson_mut_val *work(tg_call *call) {
    tg_question question = {.prompt = "Go on?", .response = TG_JSON({"type": "boolean"})};
    int64_t reads = tg_arg_int(call, "reads", 0);
    for (int64_t n = 0; n < reads; n++) {
        tg_bytes value;
        if (!tg_kv_get(call, "n", &value)) return NULL;
    }
    tg_answer answer = tg_ask(call, &question);
    return answer.value ? yyjson_mut_true(tg_doc(call)) : NULL;
}

TOOLGATE_TOOLS({
    .name = "work",
    .description = "Works, and then asks.",
    .parameters = TG_JSON({"type": "object"}),
    .run = work,
    .durable = true,
})
