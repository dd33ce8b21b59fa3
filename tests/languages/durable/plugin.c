/* A durable tool that counts, draws a random number, sends a request, asks and sleeps in each round. A kill of the host changes
 * none of its results. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "toolgate.h"

static yyjson_mut_val *round_of(tg_call *call, const char *key, int64_t number) {
    yyjson_mut_doc *doc = tg_doc(call);
    char text[256];
    int64_t count;
    uint64_t drawn = 0;
    tg_response answer;
    if (!tg_kv_increment(call, key, 1, &count)) return NULL;
    if (getentropy(&drawn, sizeof drawn)) return tg_fail(call, TG_FAILED, "no entropy");
    snprintf(text, sizeof text, "%s %" PRId64 " %" PRId64 " %" PRIx64, key, number, count, drawn);
    tg_request request = {.method = "POST", .url = tg_arg_text(call, "url").ptr, .body = {text, strlen(text)}};
    if (!tg_http(call, &request, &answer)) return NULL;

    snprintf(text, sizeof text, "%s %" PRId64, key, number);
    tg_question question = {
        .prompt = text,
        .response = TG_JSON({
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
            "additionalProperties": false
        }),
    };
    tg_answer given = tg_ask(call, &question);
    if (!given.value) return NULL;
    tg_sleep(call, 1000);

    yyjson_mut_val *result = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_int(doc, result, "count", count);
    yyjson_mut_obj_add_val(doc, result, "sent", tg_string(call, answer.body.ptr, answer.body.len));
    yyjson_val *word = yyjson_obj_get(given.value, "word");
    yyjson_mut_obj_add_val(doc, result, "given", yyjson_val_mut_copy(doc, word));
    return result;
}

static yyjson_mut_val *work(tg_call *call) {
    yyjson_mut_val *results = yyjson_mut_arr(tg_doc(call));
    const char *key = tg_arg_text(call, "key").ptr;
    int64_t rounds = tg_arg_int(call, "rounds", 1);
    for (int64_t number = 0; number < rounds; number++) {
        yyjson_mut_val *result = round_of(call, key, number);
        if (!result) return NULL;
        yyjson_mut_arr_append(results, result);
    }
    return results;
}

TOOLGATE_TOOLS({
    .name = "work_c",
    .description = "Counts, draws, sends, asks and sleeps in each round.",
    .parameters = TG_JSON({
        "type": "object",
        "properties": {"key": {"type": "string"}, "rounds": {"type": "integer"}, "url": {"type": "string"}},
        "required": ["key", "rounds", "url"]
    }),
    .run = work,
    .durable = true,
})
