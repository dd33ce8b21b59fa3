/* A tool that works in steps until it is asked to stop, one that counts the calls that were,
   and the tool of the skeleton, whose result is greater by one. */
#include <ctype.h>

#include "toolgate.h"

static volatile uint32_t sum;

static yyjson_mut_val *work(tg_call *call) {
    int64_t steps = tg_arg_int(call, "steps", 1), step = 0;
    for (; step < steps; step++) {
        int64_t count;
        if (tg_stop_requested(call)) {
            if (!tg_kv_increment(call, "stopped", 1, &count)) return NULL;
            break;
        }
        tg_progress(call, "a step", (double)step / (double)steps);
        for (uint32_t n = 0; n < 100000; n++) sum += n;
    }
    return yyjson_mut_sint(tg_doc(call), step);
}

static yyjson_mut_val *stopped(tg_call *call) {
    int64_t count;
    if (!tg_kv_increment(call, "stopped", 0, &count)) return NULL;
    return yyjson_mut_sint(tg_doc(call), count);
}

static yyjson_mut_val *count(tg_call *call) {
    tg_text text = tg_arg_text(call, "text");
    uint64_t words = 1;
    bool inside = false;
    for (size_t i = 0; i < text.len; i++) {
        bool space = isspace((unsigned char)text.ptr[i]);
        words += !inside && !space;
        inside = !space;
    }
    return yyjson_mut_uint(tg_doc(call), words);
}

TOOLGATE_TOOLS(
    {.name = "work",
     .description = "Takes steps until it is asked to stop, and gives the number of those that it took.",
     .parameters = TG_JSON({
        "type": "object",
        "properties": {"steps": {"type": "integer", "minimum": 1, "description": "Steps to take."}},
        "required": ["steps"]
     }),
     .result = TG_JSON({"type": "integer"}),
     .run = work, .streaming = true},
    {.name = "stopped",
     .description = "Gives the number of calls that were asked to stop and did.",
     .parameters = TG_JSON({"type": "object"}),
     .result = TG_JSON({"type": "integer"}),
     .run = stopped, .read_only = true},
    {.name = "hello_count",
     .description = "Counts the words of a text, and one more.",
     .parameters = TG_JSON({
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The text."}},
        "required": ["text"]
     }),
     .result = TG_JSON({"type": "integer"}),
     .run = count, .read_only = true}
)
