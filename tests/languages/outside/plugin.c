/* Host capabilities in one plugin. Its tools: one that works in steps until it is asked to stop, one that counts such calls, one
 * that uses every capability, and the tool of the template with a result that is greater by one. */
#include <ctype.h>
#include <string.h>
#include <unistd.h>

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

static bool one_more(tg_call *call, const tg_bytes *before, tg_bytes *after, void *count) {
    static char digit;
    (void)call;
    digit = (char)(before->ptr ? *(const char *)before->ptr + 1 : '1');
    *(int *)count = digit - '0';
    *after = (tg_bytes){&digit, 1};
    return true;
}

static bool store(tg_call *call, yyjson_mut_val *result) {
    yyjson_mut_doc *doc = tg_doc(call);
    static const char kept[] = "[1, \"\xC3\xBC\"]";
    tg_bytes value, gone;
    tg_text *keys;
    size_t number;
    int64_t sum;
    int count;
    if (!tg_kv_set(call, "gone", "x", 1) || !tg_kv_set(call, "kept", kept, strlen(kept)) || !tg_kv_delete(call, "gone") ||
        !tg_kv_update(call, "count", one_more, &count) || !tg_kv_get(call, "kept", &value) ||
        !tg_kv_get(call, "gone", &gone) || !tg_kv_increment(call, "sum", 2, &sum) || !tg_kv_keys(call, "", &keys, &number))
        return false;
    yyjson_doc *read = yyjson_read(value.ptr, value.len, 0);
    yyjson_mut_val *stored = yyjson_mut_obj_add_arr(doc, result, "stored");
    yyjson_mut_arr_append(stored, yyjson_val_mut_copy(doc, yyjson_doc_get_root(read)));
    yyjson_mut_arr_append(stored, gone.ptr ? yyjson_mut_true(doc) : yyjson_mut_null(doc));
    yyjson_mut_arr_append(stored, yyjson_mut_bool(doc, value.ptr != NULL));
    yyjson_mut_arr_append(stored, yyjson_mut_sint(doc, sum));
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, result, "keys");
    for (size_t i = 0; i < number; i++) yyjson_mut_arr_append(list, tg_string(call, keys[i].ptr, keys[i].len));
    return yyjson_mut_obj_add_int(doc, result, "count", count);
}

static yyjson_mut_val *reach(tg_call *call) {
    yyjson_mut_doc *doc = tg_doc(call);
    yyjson_mut_val *result = yyjson_mut_obj(doc);
    tg_text greeting, nothing;
    tg_response response;
    /* The length is that of the body, and is not said twice. */
    static const tg_header headers[] = {{"x-own", "mine"}, {"Content-Length", "7"}, {NULL, NULL}};
    tg_request request = {
        .method = "POST", .url = tg_arg_text(call, "url").ptr, .headers = headers, .body = {"ping \xC3\xBC", 7}};
    if (!tg_config_get(call, "greeting", &greeting) || !tg_config_get(call, "nothing", &nothing) || !store(call, result) ||
        !tg_http(call, &request, &response))
        return NULL;
    uint64_t drawn = 0;
    if (getentropy(&drawn, sizeof drawn)) return tg_fail(call, TG_FAILED, "no entropy");
    yyjson_mut_val *draws = yyjson_mut_obj_add_arr(doc, result, "draws");
    yyjson_mut_arr_append(draws, yyjson_mut_uint(doc, drawn));
    yyjson_mut_val *configured = yyjson_mut_obj_add_arr(doc, result, "configured");
    yyjson_mut_arr_append(configured, tg_string(call, greeting.ptr, greeting.len));
    yyjson_mut_arr_append(configured, nothing.ptr ? yyjson_mut_true(doc) : yyjson_mut_null(doc));
    yyjson_mut_arr_append(configured, tg_string(call, greeting.ptr, greeting.len));
    yyjson_mut_val *answer = yyjson_mut_obj_add_arr(doc, result, "answer");
    const char *header = tg_header_of(&response, "X-Answer");
    yyjson_mut_arr_append(answer, yyjson_mut_uint(doc, response.status));
    yyjson_mut_arr_append(answer, header ? tg_string(call, header, strlen(header)) : yyjson_mut_null(doc));
    yyjson_mut_arr_append(answer, tg_string(call, response.body.ptr, response.body.len));
    return result;
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

static yyjson_mut_val *accept(tg_call *call) { return yyjson_mut_true(tg_doc(call)); }

/* Each of these tools has this schema with another draft. */
#define DRAFT(tool, schema)                                                                                    \
    {.name = tool, .description = "Accepts what its draft accepts.", .run = accept,                            \
     .parameters = TG_JSON({                                                                                   \
        "$schema": schema,                                                                                     \
        "type": "object",                                                                                      \
        "properties": {                                                                                        \
            "count": {"$ref": "#/definitions/count", "maximum": 3},                                            \
            "pair": {"type": "array", "prefixItems": [{"type": "string"}]}                                     \
        },                                                                                                     \
        "definitions": {"count": {"type": "integer"}}                                                          \
     })}

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
    {.name = "reach",
     .description = "Reaches for everything, and says what came of it.",
     .parameters = TG_JSON({"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}),
     .run = reach},
    {.name = "hello_count",
     .description = "Counts the words of a text, and one more.",
     .parameters = TG_JSON({
        "type": "object",
        "properties": {"text": {"type": "string", "format": "email", "description": "The text."}},
        "required": ["text"]
     }),
     .result = TG_JSON({"type": "integer"}),
     .run = count, .read_only = true},
    DRAFT("draft_07", "http://json-schema.org/draft-07/schema#"),
    DRAFT("draft_2019_09", "https://json-schema.org/draft/2019-09/schema"),
    DRAFT("draft_2020_12", "https://json-schema.org/draft/2020-12/schema")
)
