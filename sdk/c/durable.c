/* Waits in the middle of a call. */
#include <string.h>

#include "toolgate_host.h"

/* Adds a list of texts that ends with NULL. */
static void add_list(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *const *texts) {
    if (!texts) return;
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, key);
    for (; *texts; texts++) yyjson_mut_arr_add_str(doc, list, *texts);
}

/* Adds a JSON text. Returns false if it is not JSON. */
static bool add_json(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *text) {
    if (!text) return true;
    yyjson_doc *read = yyjson_read(text, strlen(text), 0);
    return read && yyjson_mut_obj_add_val(doc, object, key, yyjson_val_mut_copy(doc, yyjson_doc_get_root(read)));
}

/* The end of a wait without an answer. Fails the call with its message. */
static tg_answer unanswered(tg_call *call, tg_end end, tg_text text) {
    switch (end) {
    case TG_DENIED:
        tg_fail(call, TG_FAILED, "a person denied it%s%s", text.ptr ? ": " : "", text.ptr ? text.ptr : "");
        return (tg_answer){.end = end, .comment = text};
    case TG_EXPIRED:
        tg_fail(call, TG_FAILED, "nobody answered in time");
        break;
    case TG_CANCELLED:
        tg_fail(call, TG_FAILED, "the call is being cancelled");
        break;
    default:
        tg_fail(call, TG_FAILED, "%s", text.ptr);
    }
    return (tg_answer){.end = end};
}

/* The question with the members that every wait has. */
static yyjson_mut_val *asking(tg_call *call, const char *prompt, uint64_t expires_ms) {
    yyjson_mut_doc *doc = tg_doc(call);
    yyjson_mut_val *asked = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_str(doc, asked, "prompt", prompt ? prompt : "");
    if (expires_ms) yyjson_mut_obj_add_uint(doc, asked, "expires_ms", expires_ms);
    return asked;
}

/* Waits, and reads the answer. */
static tg_answer wait_for(tg_call *call, tg_wait wait, yyjson_mut_val *asked, bool is_json) {
    static const char wrong[] = "a member of the question that must be JSON is not JSON, or a text of it is not UTF-8";
    tg_text text = {0};
    text.ptr = yyjson_mut_val_write(asked, 0, &text.len);
    if (!is_json || !text.ptr) return unanswered(call, TG_NOT_GRANTED, (tg_text){wrong, sizeof wrong - 1});
    tg_text answer = {0};
    tg_end end = tg_host_wait(wait, text, &answer);
    if (end != TG_ANSWERED) return unanswered(call, end, answer);
    yyjson_val *value = yyjson_doc_get_root(yyjson_read(answer.ptr, answer.len, 0));
    if (!value) tg_fail(call, TG_FAILED, "the answer cannot be read");
    return (tg_answer){.end = TG_ANSWERED, .value = value};
}

static tg_answer wait_for_people(tg_call *call, tg_wait wait, const tg_question *question, yyjson_mut_val *subject) {
    yyjson_mut_doc *doc = tg_doc(call);
    yyjson_mut_val *asked = asking(call, question->prompt, question->expires_ms);
    if (question->risk) yyjson_mut_obj_add_str(doc, asked, "risk", question->risk);
    add_list(doc, asked, "who", question->who);
    add_list(doc, asked, "responses", question->choices);
    if (question->quorum) yyjson_mut_obj_add_uint(doc, asked, "quorum", question->quorum);
    bool is_json = add_json(doc, asked, "response", question->response) && add_json(doc, asked, "editable", question->editable);
    if (subject) yyjson_mut_obj_add_val(doc, asked, "subject", yyjson_mut_val_mut_copy(doc, subject));
    return wait_for(call, wait, asked, is_json);
}

tg_answer tg_ask(tg_call *call, const tg_question *question) { return wait_for_people(call, TG_WAIT_ASK, question, NULL); }

tg_answer tg_approve(tg_call *call, const tg_question *question, yyjson_mut_val *subject) {
    return wait_for_people(call, TG_WAIT_APPROVE, question, subject ? subject : yyjson_mut_null(tg_doc(call)));
}

tg_answer tg_await_external(tg_call *call, const tg_external *external) {
    yyjson_mut_doc *doc = tg_doc(call);
    yyjson_mut_val *asked = asking(call, external->prompt, external->expires_ms);
    if (external->signal) yyjson_mut_obj_add_str(doc, asked, "name", external->signal);
    bool is_json = add_json(doc, asked, "schema", external->schema) && add_json(doc, asked, "metadata", external->metadata);
    return wait_for(call, TG_WAIT_EXTERNAL, asked, is_json);
}

tg_answer tg_call_tools(tg_call *call, const tg_tool_call *calls, size_t count) {
    yyjson_mut_doc *doc = tg_doc(call);
    yyjson_mut_val *request = yyjson_mut_obj(doc), *list = yyjson_mut_obj_add_arr(doc, request, "calls");
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *each = yyjson_mut_arr_add_obj(doc, list), *arguments = calls[i].arguments;
        yyjson_mut_obj_add_str(doc, each, "tool", calls[i].tool);
        yyjson_mut_obj_add_val(doc, each, "arguments", arguments ? yyjson_mut_val_mut_copy(doc, arguments) : yyjson_mut_obj(doc));
    }
    return wait_for(call, TG_WAIT_CALLS, request, true);
}

void tg_sleep(tg_call *call, uint64_t ms) {
    (void)call;
    tg_host_sleep(ms);
}
