/* A durable tool. In each round it counts, draws a random number, reads the clock, sends two requests, waits and sleeps. Each kind of
 * wait has its turn. A kill of the host changes none of its results. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "toolgate.h"

#define GIVEN TG_JSON({ \
    "type": "object", \
    "properties": {"word": {"type": "string"}}, \
    "required": ["word"], \
    "additionalProperties": false \
})

/* The end of a call of the same tool with another key and one round. */
static yyjson_mut_val *nested(tg_call *call, const char *key) {
    yyjson_mut_doc *doc = tg_doc(call);
    yyjson_mut_val *arguments = yyjson_mut_obj(doc);
    char other[256];
    snprintf(other, sizeof other, "%s+", key);
    yyjson_mut_obj_add_strcpy(doc, arguments, "key", other);
    yyjson_mut_obj_add_int(doc, arguments, "rounds", 1);
    yyjson_mut_obj_add_strcpy(doc, arguments, "url", tg_arg_text(call, "url").ptr);
    tg_answer returned = tg_call_tools(call, &(tg_tool_call){"work_c", arguments}, 1);
    if (!returned.value) return NULL;
    yyjson_val *result = yyjson_obj_get(yyjson_arr_get_first(returned.value), "result");
    return result ? yyjson_val_mut_copy(doc, result) : tg_fail(call, TG_FAILED, "the nested call has no result");
}

static yyjson_mut_val *wait_for(tg_call *call, const char *key, int64_t number) {
    yyjson_mut_doc *doc = tg_doc(call);
    tg_answer given;
    char prompt[256], word[300];
    snprintf(prompt, sizeof prompt, "%s %" PRId64, key, number);
    if (number % 4 == 0) {
        given = tg_ask(call, &(tg_question){.prompt = prompt, .response = GIVEN});
    } else if (number % 4 == 1) {
        yyjson_mut_val *subject = yyjson_mut_obj(doc);
        snprintf(word, sizeof word, "go on with %s", prompt);
        yyjson_mut_obj_add_strcpy(doc, subject, "word", word);
        given = tg_approve(call, &(tg_question){.prompt = prompt}, subject);
    } else if (number % 4 == 2) {
        given = tg_await_external(call, &(tg_external){.prompt = prompt, .schema = GIVEN});
    } else {
        return nested(call, key);
    }
    return given.value ? yyjson_val_mut_copy(doc, yyjson_obj_get(given.value, "word")) : NULL;
}

static yyjson_mut_val *round_of(tg_call *call, const char *key, int64_t number) {
    yyjson_mut_doc *doc = tg_doc(call);
    char text[512];
    int64_t count;
    uint64_t drawn = 0;
    struct timespec now;
    tg_response read, answer;
    const char *url = tg_arg_text(call, "url").ptr;
    if (!tg_kv_increment(call, key, 1, &count)) return NULL;
    if (getentropy(&drawn, sizeof drawn)) return tg_fail(call, TG_FAILED, "no entropy");
    if (clock_gettime(CLOCK_REALTIME, &now)) return tg_fail(call, TG_FAILED, "no clock");
    if (!tg_http(call, &(tg_request){.method = "GET", .url = url}, &read)) return NULL;
    snprintf(text, sizeof text, "%s %" PRId64 " %" PRId64 " %" PRIx64 " %ld %.*s", key, number, count, drawn, (long)now.tv_nsec,
             (int)read.body.len, read.body.ptr);
    tg_request request = {.method = "POST", .url = url, .body = {text, strlen(text)}};
    if (!tg_http(call, &request, &answer)) return NULL;
    yyjson_mut_val *given = wait_for(call, key, number);
    if (!given) return NULL;
    tg_sleep(call, 1000);

    yyjson_mut_val *result = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_int(doc, result, "count", count);
    yyjson_mut_obj_add_val(doc, result, "sent", tg_string(call, answer.body.ptr, answer.body.len));
    yyjson_mut_obj_add_val(doc, result, "given", given);
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
    .description = "Counts, draws, sends, waits and sleeps in each round.",
    .parameters = TG_JSON({
        "type": "object",
        "properties": {"key": {"type": "string"}, "rounds": {"type": "integer"}, "url": {"type": "string"}},
        "required": ["key", "rounds", "url"]
    }),
    .run = work,
    .durable = true,
})
