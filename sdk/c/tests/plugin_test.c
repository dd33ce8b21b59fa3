/* Tests of the SDK itself. */
#include <string.h>

#include "../toolgate_host.h"
#include "../toolgate_test.h"

static void arguments(void) {
    tg_test_result("everything", "{}", TG_JSON({"text": "", "int": -1, "number": 0.5, "bool": true, "key": "key-1",
        "attempt": 1, "caller": "tester", "approver": ""}));
    tg_test_world = (tg_test_world_t){.idempotency_key = "k", .attempt = 3,
        .scope = TG_JSON({"caller": "ada", "approver": "bob", "context": {"x": [1]}, "more": 1})};
    tg_test_result("everything", TG_JSON({"text": "\u00e4\u0000b", "int": 9007199254740993, "number": 4, "bool": false}),
        TG_JSON({"text": "\u00e4\u0000b", "int": 9007199254740993, "number": 4.0, "bool": false, "key": "k", "attempt": 3,
            "caller": "ada", "approver": "bob", "context": {"x": [1]}}));
    tg_test_world = (tg_test_world_t){0};
    tg_test_that(strstr(tg_test_run("everything", "{\"int\": 1e3}").text, "\"int\":1000") != NULL, "1e3 is an integer");
    tg_test_that(strstr(tg_test_run("everything", "{\"text\": null}").text, "\"text\":\"\"") != NULL, "null is as good as absent");
    tg_test_failure("everything", "{\"text\": 4}", TG_INVALID_ARGUMENTS, "/text: is of type uint and not string");
    tg_test_failure("everything", "{\"int\": 1.5, \"bool\": 1}", TG_INVALID_ARGUMENTS, "/int: is of type real and not integer");
    tg_test_failure("everything", "{\"int\": 18446744073709551615}", TG_INVALID_ARGUMENTS, "/int:");
    tg_test_failure("everything", "{\"number\": \"1\"}", TG_INVALID_ARGUMENTS, "/number: is of type string and not number");
    tg_test_failure("everything", "{\"bool\": 0}", TG_INVALID_ARGUMENTS, "/bool:");
    tg_test_failure("everything", "{", TG_INVALID_ARGUMENTS, "");
    tg_test_failure("everything", "{\"int\": 50000, \"bool\": true, \"int\": 5}", TG_INVALID_ARGUMENTS, "/int: duplicate key");
    tg_test_failure("everything", "{\"x\": [1, {\"y\": {\"a\": 1, \"\\u0061\": 2}}]}", TG_INVALID_ARGUMENTS, "/x/1/y/a: duplicate key");
    tg_test_that(tg_test_run("everything", "{\"x\": [{\"a\": 1, \"b\": 2}, {\"a\": 1}], \"a\": 1}").ok, "in several objects a name is not there twice");
}

static void failures(void) {
    tg_test_failure("fails", "{\"how\": \"silently\"}", TG_FAILED, "no result and no reason");
    tg_test_failure("fails", "{\"how\": \"unwritable\"}", TG_FAILED, "cannot be written");
    tg_test_failure("fails", "{\"how\": \"later\"}", TG_UNAVAILABLE, "the kitchen is closed");
    tg_test_text(tg_test_run("fails", "{\"how\": \"now\"}").text, "not now \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", "a surrogate is not UTF-8");
    tg_test_failure("fails", "{\"how\": 1}", TG_INVALID_ARGUMENTS, "/how: is of type");
    tg_test_failure("sure", "{}", TG_INVALID_ARGUMENTS, "no server tool");
    tg_test_failure("nothing", "{}", TG_INVALID_ARGUMENTS, "no server tool");
}

static void progress(void) {
    tg_test_text(tg_test_run("steps", "{}").notes,
        "progress 0.00 working 0\nprogress 0.25 working 1\nprogress 0.50 working 2\nprogress ? nearly \xEF\xBF\xBD\nwarn 3 done \xEF\xBF\xBD\n",
        "reports arrive in order");
    tg_test_world.stop_at = 2;
    tg_test_failure("steps", "{}", TG_FAILED, "stopped at step 1");
    tg_test_world.stop_at = 0;
}

static void faster(void) {
    tg_test_world.before_swap = NULL;
    tg_test_store("count", "40");
}

static void capabilities(void) {
    tg_test_result("store", "{}", TG_JSON(["1", 2, 2]));
    tg_test_result("store", "{\"by\": 4}", TG_JSON(["5", 4, 2]));
    tg_test_world.before_swap = faster;
    tg_test_result("store", "{\"by\": 2}", TG_JSON(["42", 6, 2]));
    tg_test_failure("store", "{\"by\": 99}", TG_FAILED, "that is too much");
    tg_test_text(tg_test_stored("count"), "42", "a step that fails writes nothing");
    tg_test_store("calls", "x");
    tg_test_failure("store", "{}", TG_UNAVAILABLE, "it is not a number");
    tg_test_forget();
    tg_test_text(tg_test_stored("count"), NULL, "a deleted key does not exist");
}

static bool serve(const tg_request *request, tg_response *response) {
    static const tg_header headers[] = {{"content-type", "text/x"}, {NULL, NULL}};
    if (strcmp(request->method, "POST") || !strstr(request->url, "example.com") || strcmp(request->headers[0].value, "t")) return false;
    *response = (tg_response){(uint16_t)(strstr(request->url, "busy") ? 503 : 200), headers, request->body};
    return true;
}

static void requests(void) {
    static const tg_header config[] = {{"token", "t"}, {NULL, NULL}};
    tg_test_failure("fetch", "{}", TG_FAILED, "no token is configured");
    tg_test_world.config = config;
    tg_test_failure("fetch", "{}", TG_FAILED, "the host does not allow the request");
    tg_test_world.http = serve;
    tg_test_result("fetch", "{}", "\"body\"");
    tg_test_text(tg_test_run("fetch", "{}").notes, "info text/x\n", "a header is found in any case");
    tg_test_failure("fetch", "{\"url\": \"https://example.com/busy\"}", TG_UNAVAILABLE, "status 503");
    tg_test_failure("fetch", "{\"url\": \"https://other/\"}", TG_FAILED, "does not allow");
    tg_test_world = (tg_test_world_t){0};
}

#define WAITS(...)                                            \
    (tg_test_world_t) {                                       \
        .waits = (const tg_test_end_t[]){__VA_ARGS__},        \
        .wait_count = sizeof((const tg_test_end_t[]){__VA_ARGS__}) / sizeof(tg_test_end_t), \
    }

static void waits(void) {
    tg_test_world = WAITS(TG_TEST_ANSWER("\"live\""), TG_TEST_APPROVAL(NULL), TG_TEST_ANSWER(TG_JSON({"decision": "yes", "data": 7})));
    tg_test_result("deploy", "{}", TG_JSON([{"environment": "live", "instances": 3}, {"decision": "yes", "data": 7}]));
    tg_test_text(tg_test_run("deploy", "{}").notes,
        "ask {\"prompt\":\"Where to?\",\"expires_ms\":60000,\"who\":[\"group:ops\"],\"response\":{\"type\":\"string\"}}\n"
        "approve {\"prompt\":\"Deploy?\",\"risk\":\"high\",\"quorum\":2,\"editable\":[\"instances\"],"
        "\"subject\":{\"environment\":\"live\",\"instances\":3}}\n"
        "sleep 5000\nask {\"prompt\":\"Healthy?\",\"responses\":[\"yes\",\"no\"]}\n",
        "a test sees the waits in order");
    tg_test_world = WAITS(TG_TEST_ANSWER("\"live\""), TG_TEST_APPROVAL("{\"instances\":1}"), TG_TEST_ANSWER(TG_JSON({"decision": "no"})));
    tg_test_result("deploy", "{}", TG_JSON([{"instances": 1}, {"decision": "no"}]));
    tg_test_world = WAITS(TG_TEST_ANSWER("\"live\""), {.end = TG_DENIED, .text = "not today"});
    tg_test_failure("deploy", "{}", TG_FAILED, "a person denied it: not today");
    tg_test_world = WAITS({.end = TG_DENIED});
    tg_test_text(tg_test_run("deploy", "{}").text, "a person denied it", "a denial without a comment");
    tg_test_world = WAITS({.end = TG_EXPIRED});
    tg_test_failure("deploy", "{}", TG_FAILED, "nobody answered in time");
    tg_test_world = WAITS(TG_TEST_ANSWER("\"live\""), {.end = TG_EXPIRED});
    tg_test_result("deploy", "{}", "\"nobody was there\"");
    tg_test_world = WAITS(TG_TEST_ANSWER("\"live\""), TG_TEST_ANSWER("\"live\""));
    tg_test_failure("deploy", "{}", TG_FAILED, "the test does not answer this question");
    tg_test_failure("hasty", "{}", TG_FAILED, "declare it with .durable = true");
    tg_test_failure("garbled", "{}", TG_FAILED, "is not JSON");
    tg_test_world = (tg_test_world_t){0};
}

static void external_waits(void) {
    tg_test_world = WAITS(TG_TEST_RESULT(TG_JSON({"healthy": true})), TG_TEST_RESULT("[1]"));
    tg_test_result("watch", "{}", TG_JSON([{"healthy": true}, [1]]));
    tg_test_text(tg_test_run("watch", "{}").notes,
        "await-external {\"prompt\":\"The health\",\"expires_ms\":60000,\"name\":\"health\",\"schema\":{\"type\":\"object\"},"
        "\"metadata\":{\"job\":7}}\nawait-external {\"prompt\":\"Anything\"}\n",
        "a test sees the waits for external systems");
    tg_test_world = WAITS({.end = TG_EXPIRED});
    tg_test_result("watch", "{}", "\"no report\"");
    tg_test_world = WAITS(TG_TEST_ANSWER("{}"), TG_TEST_RESULT("[1]"));
    tg_test_failure("watch", "{}", TG_FAILED, "the test does not answer this question");
    tg_test_world = WAITS(TG_TEST_APPROVAL("{}"), TG_TEST_RESULT("[1]"));
    tg_test_failure("watch", "{}", TG_FAILED, "the test does not answer this question");
    tg_test_world = WAITS(TG_TEST_RESULT("\"live\""), TG_TEST_APPROVAL(NULL), TG_TEST_ANSWER(TG_JSON({"decision": "yes"})));
    tg_test_failure("deploy", "{}", TG_FAILED, "the test does not answer this question");
    tg_test_failure("half", "{}", TG_FAILED, "is not JSON");
    tg_test_world = (tg_test_world_t){0};
}

static void other_tools(void) {
    static const char ends[] = TG_JSON([{"ok": true, "result": 7, "trusted": false}, {"ok": false, "error": {"code": "denied", "message": "no"}}]);
    tg_test_world = WAITS(TG_TEST_RETURNED(ends));
    tg_test_result("post", "{}", ends);
    tg_test_text(tg_test_run("post", "{}").notes,
        "call-tools {\"calls\":[{\"tool\":\"ledger_post\",\"arguments\":{\"amount\":5}},{\"tool\":\"ledger_read\",\"arguments\":{}}]}\n",
        "a test sees the calls of other tools");
    tg_test_world = WAITS(TG_TEST_RESULT("[]"));
    tg_test_failure("post", "{}", TG_FAILED, "the test does not answer this question");
    tg_test_world = WAITS(TG_TEST_RETURNED("[]"));
    tg_test_failure("watch", "{}", TG_FAILED, "the test does not answer this question");
    tg_test_failure("mangled", "{}", TG_FAILED, "is not UTF-8");
    tg_test_world = (tg_test_world_t){0};
}

static const char *options(tg_tool tool) {
    const char *wrong;
    tg_text text = tg_options_of(&tool, &wrong);
    return wrong ? wrong : text.ptr;
}

static void declarations(void) {
    tg_test_declarations();
    tg_test_text(options((tg_tool){0}), "{}", "a plain tool has no options");
    tg_test_text(options((tg_tool){.durable = true}), "{\"durable\":true}", "a durable tool");
    tg_test_text(options(tg_tools[1]),
        "{\"hints\":{\"open_world\":false,\"idempotent\":true},\"recovery\":\"ask\",\"title\":\"Steps\",\"timeout_ms\":1000,\"result\":{\"type\":\"null\"}}",
        "options of both places are one object");
    tg_test_text(options((tg_tool){.options = "[1]"}), "`options` is not a JSON object", "a list");
    tg_test_text(options((tg_tool){.options = "{"}), "`options` is not a JSON object", "half an object");
    tg_test_text(options((tg_tool){.result = "x"}), "`result` is not JSON", "text that is not JSON");
    tg_test_text(options((tg_tool){.title = "\xff"}), "a text of the options is not UTF-8", "no UTF-8");
}

static void utf8(void) {
    static const struct {
        const char *text, *clean;
    } rows[] = {
        {"", ""}, {"a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"\x80", "\xEF\xBF\xBD"}, {"\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD"}, {"\xE0\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, {"\xE2\x82", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF5x", "\xEF\xBF\xBDx"}, {"\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF", "\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        tg_test_text(tg_clean(rows[i].text, strlen(rows[i].text)).ptr, rows[i].clean, "UTF-8");
}

int main(void) {
    arguments();
    failures();
    progress();
    capabilities();
    requests();
    waits();
    external_waits();
    other_tools();
    declarations();
    utf8();
    return tg_test_end();
}
