/* The host of a test, and the functions of tests. The name ends in _test, so components do not contain it. */
#ifndef __wasm__

#include "toolgate_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toolgate_host.h"

tg_test_world_t tg_test_world;

static const tg_host_answer fine = {TG_HOST_OK, {"", 0}};
static char *notes;
static size_t noted;
static unsigned asked, waited, tests, wrong;
static const tg_tool *running;

static tg_text text_of(const char *text) { return (tg_text){text, strlen(text)}; }

static void note(const char *word, tg_text message, const char *data) {
    size_t room = noted + strlen(word) + message.len + strlen(data) + 4;
    notes = realloc(notes, room);
    if (!notes) abort();
    noted += (size_t)snprintf(notes + noted, room - noted, "%s %s%s%s\n", word, message.ptr, *data ? " " : "", data);
}

void tg_host_progress(tg_text message, double fraction, const tg_text *data) {
    char word[32] = "progress ?";
    if (fraction >= 0 && fraction <= 1) snprintf(word, sizeof word, "progress %.2f", fraction);
    note(word, message, data ? data->ptr : "");
}

void tg_host_log(tg_level level, tg_text message) {
    static const char *const words[] = {"debug", "info", "warn", "error"};
    note(words[level], message, "");
}

bool tg_host_stop_requested(void) { return tg_test_world.stop_at && ++asked >= tg_test_world.stop_at; }

/* ---- Durable calls ---- */

static bool is_durable(void) {
    const char *unused;
    if (!running) return false;
    tg_text options = tg_options_of(running, &unused);
    return yyjson_get_bool(yyjson_obj_get(yyjson_doc_get_root(yyjson_read(options.ptr, options.len, 0)), "durable"));
}

static const char not_durable[] = "only a durable tool can wait in the middle of a call: declare it with .durable = true";

tg_end tg_host_wait(tg_wait wait, tg_text question, tg_text *text) {
    static const char *const words[] = {"ask", "approve", "await-external", "call-tools"};
    note(words[wait], question, "");
    if (!is_durable()) {
        *text = text_of(not_durable);
        return TG_NOT_GRANTED;
    }
    const tg_test_end_t *end = waited < tg_test_world.wait_count ? &tg_test_world.waits[waited++] : NULL;
    if (!end || (end->end == TG_ANSWERED && end->wait != wait)) {
        *text = text_of("the test does not answer this question");
        return TG_NOT_GRANTED;
    }
    if (end->text) *text = text_of(end->text);
    if (end->end == TG_ANSWERED && wait == TG_WAIT_APPROVE && !end->text) {
        yyjson_val *subject = yyjson_obj_get(yyjson_doc_get_root(yyjson_read(question.ptr, question.len, 0)), "subject");
        text->ptr = yyjson_val_write(subject, 0, &text->len);
    }
    return end->end;
}

void tg_host_sleep(uint64_t ms) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)ms);
    note("sleep", text_of(text), "");
    if (!is_durable()) tg_test_that(false, not_durable);
}

/* ---- The key-value store: a list ---- */

static struct entry {
    tg_text key;
    tg_bytes value; /* ptr is NULL if the key does not exist */
    uint64_t version;
} *entries;
static size_t entry_count;

static struct entry *entry_of(tg_text key) {
    for (size_t i = 0; i < entry_count; i++)
        if (entries[i].key.len == key.len && !memcmp(entries[i].key.ptr, key.ptr, key.len)) return &entries[i];
    entries = realloc(entries, (entry_count + 1) * sizeof *entries);
    if (!entries) abort();
    entries[entry_count] = (struct entry){tg_copy(key.ptr, key.len), {NULL, 0}, 0};
    return &entries[entry_count++];
}

static void put(tg_text key, tg_bytes value) {
    struct entry *entry = entry_of(key);
    entry->value = value.ptr ? tg_copy(value.ptr, value.len) : value;
    entry->version++;
}

void tg_test_forget(void) { entry_count = 0; }
void tg_test_store(const char *key, const char *value) { put(text_of(key), value ? text_of(value) : (tg_bytes){NULL, 0}); }
const char *tg_test_stored(const char *key) { return entry_of(text_of(key))->value.ptr; }

tg_host_answer tg_host_kv_get(tg_text key, tg_bytes *value) {
    *value = entry_of(key)->value;
    return fine;
}

tg_host_answer tg_host_kv_set(tg_text key, tg_bytes value) {
    put(key, value);
    return fine;
}

tg_host_answer tg_host_kv_delete(tg_text key) {
    put(key, (tg_bytes){NULL, 0});
    return fine;
}

tg_host_answer tg_host_kv_increment(tg_text key, int64_t by, int64_t *sum) {
    char text[24];
    tg_bytes before = entry_of(key)->value;
    char *end = NULL;
    *sum = before.ptr ? strtoll(before.ptr, &end, 10) : 0;
    if (end && *end) return (tg_host_answer){TG_HOST_UNREACHABLE, text_of("it is not a number")};
    *sum += by;
    snprintf(text, sizeof text, "%lld", (long long)*sum);
    put(key, text_of(text));
    return fine;
}

tg_host_answer tg_host_kv_keys(tg_text **keys, size_t *count) {
    *keys = tg_alloc(entry_count * sizeof **keys);
    *count = 0;
    for (size_t i = 0; i < entry_count; i++)
        if (entries[i].value.ptr) (*keys)[(*count)++] = entries[i].key;
    return fine;
}

tg_host_answer tg_host_kv_look(tg_text key, tg_host_cas *cas, tg_bytes *value) {
    *cas = (tg_host_cas){entry_of(key)->version, key};
    return tg_host_kv_current(cas, value);
}

tg_host_answer tg_host_kv_current(tg_host_cas *cas, tg_bytes *value) {
    *value = entry_of(cas->key)->value;
    return fine;
}

tg_host_answer tg_host_kv_swap(tg_host_cas *cas, tg_bytes value) {
    if (tg_test_world.before_swap) tg_test_world.before_swap();
    uint64_t now = entry_of(cas->key)->version;
    if (now != cas->look) {
        cas->look = now;
        return (tg_host_answer){TG_HOST_RACE, text_of("another call was faster")};
    }
    put(cas->key, value);
    return fine;
}

tg_host_answer tg_host_config_get(tg_text name, tg_text *value) {
    *value = (tg_text){NULL, 0};
    for (const tg_header *entry = tg_test_world.config; entry && entry->name; entry++)
        if (!strcmp(entry->name, name.ptr)) *value = text_of(entry->value);
    return fine;
}

tg_host_answer tg_host_http(const tg_request *request, tg_response *response) {
    if (tg_test_world.http && tg_test_world.http(request, response)) return fine;
    return (tg_host_answer){TG_HOST_DENIED, text_of("the test has no answer to this request")};
}

/* ---- Calls and tests ---- */

static const char *or(const char *text, const char *otherwise) { return text ? text : otherwise; }

tg_test_run_t tg_test_run(const char *tool, const char *arguments) {
    free(notes);
    notes = NULL;
    noted = asked = waited = 0;
    running = NULL;
    for (size_t i = 0; i < tg_tool_count; i++)
        if (!strcmp(or(tg_tools[i].name, ""), tool)) running = &tg_tools[i];
    tg_wire_call call = {
        .id = text_of(or(tg_test_world.id, "call-1")),
        .tool = text_of(tool),
        .arguments = text_of(arguments),
        .idempotency_key = text_of(or(tg_test_world.idempotency_key, "key-1")),
        .scope = text_of(or(tg_test_world.scope, "{\"conversation\":\"c\",\"turn\":\"t\",\"caller\":\"tester\"}")),
        .attempt = tg_test_world.attempt ? tg_test_world.attempt : 1,
    };
    tg_outcome outcome = tg_carry_out(&call);
    return (tg_test_run_t){outcome.ok, outcome.kind, outcome.text.ptr, or(notes, "")};
}

void tg_test_that(bool is_so, const char *what) {
    tests++;
    if (is_so) return;
    wrong++;
    printf("WRONG %s\n", what);
}

void tg_test_text(const char *text, const char *wanted, const char *what) {
    bool same = text && wanted ? !strcmp(text, wanted) : text == wanted;
    tg_test_that(same, what);
    if (!same) printf("  is     %s\n  wanted %s\n", or(text, "(nothing)"), or(wanted, "(nothing)"));
}

static const char *word_of(tg_kind kind) {
    static const char *const words[] = {"invalid-arguments", "failed", "unavailable"};
    return words[kind];
}

static bool same_json(const char *a, const char *b) {
    yyjson_doc *x = yyjson_read(a, strlen(a), 0), *y = yyjson_read(b, strlen(b), 0);
    bool same = x && y && yyjson_equals(yyjson_doc_get_root(x), yyjson_doc_get_root(y));
    yyjson_doc_free(x);
    yyjson_doc_free(y);
    return same;
}

void tg_test_result(const char *tool, const char *arguments, const char *wanted) {
    tg_test_run_t run = tg_test_run(tool, arguments);
    bool good = run.ok && (!wanted || same_json(run.text, wanted));
    tg_test_that(good, tool);
    if (good) return;
    printf("  %s\n  %s %s\n  wanted %s\n", arguments, run.ok ? "is" : word_of(run.kind), run.text, or(wanted, "a result"));
}

void tg_test_failure(const char *tool, const char *arguments, tg_kind kind, const char *part) {
    tg_test_run_t run = tg_test_run(tool, arguments);
    bool good = !run.ok && run.kind == kind && strstr(run.text, part);
    tg_test_that(good, tool);
    if (good) return;
    printf("  %s\n  %s %s\n  wanted %s %s\n", arguments, run.ok ? "is" : word_of(run.kind), run.text, word_of(kind), part);
}

/* Tests one rule of a declaration. */
static void declared(const tg_tool *tool, bool right, const char *what) {
    char line[200];
    snprintf(line, sizeof line, "%s: %s", or(tool->name, "(a tool without a name)"), what);
    tg_test_that(right, line);
}

static bool legal_name(const char *name) {
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return length >= 1 && length <= 64 && !name[length];
}

/* Whether a text can be a JSON Schema. */
static bool schema(const char *text, bool of_object) {
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    bool good = yyjson_is_obj(root) && (!of_object || yyjson_equals_str(yyjson_obj_get(root, "type"), "object"));
    yyjson_doc_free(doc);
    return good;
}

void tg_test_declarations(void) {
    tg_test_that(tg_tool_count > 0, "the plugin declares a tool");
    for (size_t i = 0; i < tg_tool_count; i++) {
        const tg_tool *tool = &tg_tools[i];
        const char *problem;
        bool can_gate = tool->executor == TG_SERVER || tool->executor == TG_CLIENT;
        declared(tool, tool->name && legal_name(tool->name), "a name is 1 to 64 letters, digits, `_` or `-`");
        for (size_t j = 0; tool->name && j < i; j++)
            declared(tool, !tg_tools[j].name || strcmp(tool->name, tg_tools[j].name), "another tool has the same name");
        declared(tool, tool->description && *tool->description, "the description is empty, so no model knows when to use the tool");
        declared(tool, !tool->parameters || schema(tool->parameters, true), "`parameters` is a JSON Schema of type object");
        declared(tool, !tool->result || schema(tool->result, false), "`result` is a JSON Schema");
        declared(tool, (tool->executor == TG_SERVER) == (tool->run != NULL), "a server tool has a function, and no other tool has one");
        declared(tool, can_gate || !(tool->requires_approval || tool->streaming), "tools of a person or a provider are neither gated nor streaming");
        declared(tool, !(tool->read_only && tool->destructive), "a tool cannot be both read-only and destructive");
        tg_options_of(tool, &problem);
        declared(tool, !problem, or(problem, ""));
    }
}

/* The content of a file, or NULL. */
static char *content_of(const char *path, size_t *len) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *text = NULL;
    size_t got;
    *len = 0;
    do {
        text = realloc(text, *len + 4097);
        if (!text) abort();
        got = fread(text + *len, 1, 4096, file);
        *len += got;
    } while (got);
    text[*len] = 0;
    fclose(file);
    return text;
}

void tg_test_examples(const char *path) {
    size_t len = 0;
    char *text = content_of(path, &len);
    yyjson_doc *doc = text ? yyjson_read(text, len, 0) : NULL;
    yyjson_val *root = yyjson_doc_get_root(doc), *example;
    tg_test_that(yyjson_arr_size(root) > 0, path);
    yyjson_arr_iter each = yyjson_arr_iter_with(root);
    while ((example = yyjson_arr_iter_next(&each))) {
        const char *tool = or(yyjson_get_str(yyjson_obj_get(example, "tool")), "");
        char *arguments = yyjson_val_write(yyjson_obj_get(example, "arguments"), 0, NULL);
        char *result = yyjson_val_write(yyjson_obj_get(example, "result"), 0, NULL);
        const char *failure = yyjson_get_str(yyjson_obj_get(example, "failure"));
        if (failure) {
            tg_test_run_t run = tg_test_run(tool, or(arguments, "{}"));
            tg_test_that(!run.ok && !strcmp(word_of(run.kind), failure), or(yyjson_get_str(yyjson_obj_get(example, "name")), tool));
        } else {
            tg_test_result(tool, or(arguments, "{}"), result);
        }
        free(arguments);
        free(result);
    }
    yyjson_doc_free(doc);
    free(text);
}

int tg_test_end(void) {
    printf("%u tests, %u wrong\n", tests, wrong);
    return wrong || !tests;
}

#endif
