/* Tools that do what the tests of the SDK need. */
#include <stdio.h>
#include <string.h>

#include "toolgate.h"

static yyjson_mut_val *everything(tg_call *call) {
    yyjson_mut_doc *doc = tg_doc(call);
    yyjson_mut_val *result = yyjson_mut_obj(doc);
    tg_text text = tg_arg_text(call, "text");
    tg_scope scope = tg_scope_of(call);
    yyjson_mut_obj_add_val(doc, result, "text", tg_string(call, text.ptr, text.len));
    yyjson_mut_obj_add_int(doc, result, "int", tg_arg_int(call, "int", -1));
    yyjson_mut_obj_add_real(doc, result, "number", tg_arg_number(call, "number", 0.5));
    yyjson_mut_obj_add_bool(doc, result, "bool", tg_arg_bool(call, "bool", true));
    yyjson_mut_obj_add_strcpy(doc, result, "key", tg_idempotency_key(call).ptr);
    yyjson_mut_obj_add_uint(doc, result, "attempt", tg_attempt(call));
    yyjson_mut_obj_add_strcpy(doc, result, "caller", scope.caller.ptr);
    yyjson_mut_obj_add_strcpy(doc, result, "approver", scope.approver.ptr);
    if (scope.context) yyjson_mut_obj_add_val(doc, result, "context", yyjson_val_mut_copy(doc, scope.context));
    return result;
}

static yyjson_mut_val *steps(tg_call *call) {
    for (int step = 0; step < 3; step++) {
        if (tg_stop_requested(call)) return tg_fail(call, TG_FAILED, "stopped at step %d", step);
        tg_report(call, "working", step / 4.0, yyjson_mut_sint(tg_doc(call), step));
    }
    tg_progress(call, "nearly \xff", TG_UNKNOWN);
    tg_log(call, TG_WARN, "%d %s", 3, "done \xc3");
    return yyjson_mut_null(tg_doc(call));
}

static yyjson_mut_val *fails(tg_call *call) {
    tg_text how = tg_arg_text(call, "how");
    if (!strcmp(how.ptr, "silently")) return NULL;
    if (!strcmp(how.ptr, "unwritable")) return yyjson_mut_str(tg_doc(call), "\xff");
    if (!strcmp(how.ptr, "later")) return tg_fail(call, TG_UNAVAILABLE, "the %s is closed", "kitchen");
    return tg_fail(call, TG_INVALID_ARGUMENTS, "not %s \xed\xa0\x80", how.ptr);
}

static bool add(tg_call *call, const tg_bytes *before, tg_bytes *after, void *context) {
    static char sum[32];
    (void)call;
    yyjson_doc *doc = before->ptr ? yyjson_read(before->ptr, before->len, 0) : NULL;
    int64_t number = yyjson_get_sint(yyjson_doc_get_root(doc)) + *(int64_t *)context;
    yyjson_doc_free(doc);
    if (number > 100) {
        tg_fail(call, TG_FAILED, "that is too much");
        return false;
    }
    *after = (tg_bytes){sum, (size_t)snprintf(sum, sizeof sum, "%lld", (long long)number)};
    return true;
}

static yyjson_mut_val *store(tg_call *call) {
    int64_t by = tg_arg_int(call, "by", 1), sum;
    tg_bytes value, none;
    tg_text *keys;
    size_t count;
    if (!tg_kv_update(call, "count", add, &by) || !tg_kv_increment(call, "calls", 2, &sum) ||
        !tg_kv_set(call, "gone", "x", 1) || !tg_kv_delete(call, "gone") || !tg_kv_get(call, "count", &value) ||
        !tg_kv_get(call, "gone", &none) || !tg_kv_keys(call, "c", &keys, &count))
        return NULL;
    if (none.ptr) return tg_fail(call, TG_FAILED, "a deleted key still exists");
    yyjson_mut_val *result = yyjson_mut_arr(tg_doc(call));
    yyjson_mut_arr_append(result, tg_string(call, value.ptr, value.len));
    yyjson_mut_arr_append(result, yyjson_mut_sint(tg_doc(call), sum));
    yyjson_mut_arr_append(result, yyjson_mut_uint(tg_doc(call), count));
    return result;
}

static yyjson_mut_val *fetch(tg_call *call) {
    tg_text token;
    tg_response response;
    if (!tg_config_get(call, "token", &token)) return NULL;
    if (!token.ptr) return tg_fail(call, TG_FAILED, "no token is configured");
    tg_text url = tg_arg_text_or(call, "url", "https://api.example.com/v1?q=1");
    tg_header headers[] = {{"authorization", token.ptr}, {NULL, NULL}};
    tg_request request = {.method = "POST", .url = url.ptr, .headers = headers, .body = {"body", 4}};
    if (!tg_http(call, &request, &response)) return NULL;
    if (response.status != 200) return tg_fail(call, TG_UNAVAILABLE, "status %d", response.status);
    const char *type = tg_header_of(&response, "Content-Type");
    tg_log(call, TG_INFO, "%s", type ? type : "no type");
    return tg_string(call, response.body.ptr, response.body.len);
}

static yyjson_mut_val *deploy(tg_call *call) {
    static const char *const who[] = {"group:ops", NULL}, *const choices[] = {"yes", "no", NULL};
    yyjson_mut_doc *doc = tg_doc(call);
    tg_question where = {.prompt = "Where to?", .expires_ms = 60000, .who = who, .response = TG_JSON({"type": "string"})};
    tg_answer place = tg_ask(call, &where);
    if (!place.value) return NULL;
    yyjson_mut_val *plan = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_str(doc, plan, "environment", yyjson_get_str(place.value));
    yyjson_mut_obj_add_int(doc, plan, "instances", 3);
    tg_question sure = {.prompt = "Deploy?", .risk = "high", .editable = TG_JSON(["instances"]), .quorum = 2};
    tg_answer approved = tg_approve(call, &sure, plan);
    if (approved.end == TG_EXPIRED) return yyjson_mut_str(doc, "nobody was there");
    if (!approved.value) return NULL;
    tg_sleep(call, 5000);
    tg_question healthy = {.prompt = "Healthy?", .choices = choices};
    tg_answer choice = tg_ask(call, &healthy);
    if (!choice.value) return NULL;
    yyjson_mut_val *result = yyjson_mut_arr(doc);
    yyjson_mut_arr_append(result, yyjson_val_mut_copy(doc, approved.value));
    yyjson_mut_arr_append(result, yyjson_val_mut_copy(doc, choice.value));
    return result;
}

static yyjson_mut_val *watch(tg_call *call) {
    tg_external health = {
        .prompt = "The health", .schema = TG_JSON({"type": "object"}), .signal = "health", .metadata = TG_JSON({"job": 7}), .expires_ms = 60000,
    };
    tg_answer report = tg_await_external(call, &health);
    if (report.end == TG_EXPIRED) return yyjson_mut_str(tg_doc(call), "no report");
    if (!report.value) return NULL;
    tg_external rest = {.prompt = "Anything"};
    tg_answer more = tg_await_external(call, &rest);
    if (!more.value) return NULL;
    yyjson_mut_val *result = yyjson_mut_arr(tg_doc(call));
    yyjson_mut_arr_append(result, yyjson_val_mut_copy(tg_doc(call), report.value));
    yyjson_mut_arr_append(result, yyjson_val_mut_copy(tg_doc(call), more.value));
    return result;
}

static yyjson_mut_val *half(tg_call *call) {
    tg_external external = {.prompt = "?", .metadata = "{"};
    tg_answer answer = tg_await_external(call, &external);
    return answer.value ? yyjson_mut_null(tg_doc(call)) : NULL;
}

static yyjson_mut_val *post(tg_call *call) {
    yyjson_mut_doc *doc = tg_doc(call);
    yyjson_mut_val *amount = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_int(doc, amount, "amount", 5);
    tg_tool_call calls[] = {{"ledger_post", amount}, {.tool = "ledger_read"}};
    tg_answer returned = tg_call_tools(call, calls, 2);
    return returned.value ? yyjson_val_mut_copy(doc, returned.value) : NULL;
}

static yyjson_mut_val *mangled(tg_call *call) {
    tg_tool_call calls[] = {{.tool = "\xff"}};
    tg_answer returned = tg_call_tools(call, calls, 1);
    return returned.value ? yyjson_mut_null(tg_doc(call)) : NULL;
}

static yyjson_mut_val *garbled(tg_call *call) {
    tg_question question = {.prompt = "?", .response = "{"};
    tg_answer answer = tg_ask(call, &question);
    return answer.value ? yyjson_mut_null(tg_doc(call)) : NULL;
}

TOOLGATE_TOOLS(
    {.name = "everything", .description = "Gives all it knows.", .run = everything,
     .parameters = TG_JSON({"type": "object", "properties": {"text": {"type": "string", "pattern": "^[\"a-z\\n]*$"}}})},
    {.name = "steps", .description = "Works in steps.", .run = steps, .streaming = true, .title = "Steps", .timeout_ms = 1000,
     .result = TG_JSON({"type": "null"}), .idempotent = true, .options = TG_JSON({"hints": {"open_world": false}, "recovery": "ask"})},
    {.name = "fails", .description = "Fails.", .run = fails, .requires_approval = true, .destructive = true, .risk = "high",
     .prompt = "Fail {how}?", .expires_ms = 60000,
     .parameters = TG_JSON({"type": "object", "properties": {"how": {"type": "string"}}, "required": ["how"]})},
    {.name = "store", .description = "Counts.", .run = store},
    {.name = "fetch", .description = "Fetches.", .run = fetch},
    {.name = "deploy", .description = "Deploys.", .run = deploy, .durable = true, .expires_ms = 60000},
    {.name = "watch", .description = "Waits for reports.", .run = watch, .durable = true},
    {.name = "post", .description = "Posts with other tools.", .run = post, .durable = true},
    {.name = "mangled", .description = "Calls a tool without a name.", .run = mangled, .durable = true},
    {.name = "half", .description = "Sends half a value.", .run = half, .durable = true},
    {.name = "hasty", .description = "Deploys, which it may not.", .run = deploy},
    {.name = "garbled", .description = "Asks with half a schema.", .run = garbled, .durable = true},
    {.name = "sure", .description = "Asks.", .executor = TG_HUMAN, .options = TG_JSON({"response": {"type": "boolean"}})}
)
