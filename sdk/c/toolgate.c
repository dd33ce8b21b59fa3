/* The SDK itself: arguments, results, failures, declarations. It knows no bindings. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toolgate_host.h"

struct tg_call {
    const tg_wire_call *wire;
    yyjson_val *arguments;
    yyjson_mut_doc *doc;
    bool refused; /* an argument had the wrong type */
    bool failed;
    tg_kind kind;
    tg_text why;
};

void *tg_alloc(size_t size) {
    void *memory = malloc(size ? size : 1);
    if (!memory) abort(); /* a trap, which the host reports as out of memory */
    return memory;
}

tg_text tg_copy(const void *ptr, size_t len) {
    char *copy = tg_alloc(len + 1);
    if (len) memcpy(copy, ptr, len);
    copy[len] = 0;
    return (tg_text){copy, len};
}

/* The length of the UTF-8 sequence at `at`, or 0 (Unicode, table 3-7). */
static size_t sequence(const uint8_t *at, size_t left) {
    if (at[0] < 0x80) return 1;
    size_t length = at[0] >= 0xC2 && at[0] <= 0xDF ? 2 : (at[0] & 0xF0) == 0xE0 ? 3 : at[0] >= 0xF0 && at[0] <= 0xF4 ? 4 : 0;
    if (!length || left < length) return 0;
    uint8_t low = at[0] == 0xE0 ? 0xA0 : at[0] == 0xF0 ? 0x90 : 0x80;
    uint8_t high = at[0] == 0xED ? 0x9F : at[0] == 0xF4 ? 0x8F : 0xBF;
    if (at[1] < low || at[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xC0) != 0x80) return 0;
    return length;
}

tg_text tg_clean(const void *ptr, size_t len) {
    const uint8_t *from = ptr;
    size_t wrong = 0;
    for (size_t i = 0, n; i < len; i += n ? n : 1) wrong += !(n = sequence(from + i, len - i));
    if (!wrong) return tg_copy(ptr, len);
    char *clean = tg_alloc(len + 2 * wrong + 1);
    size_t to = 0;
    for (size_t i = 0; i < len;) {
        size_t n = sequence(from + i, len - i);
        memcpy(clean + to, n ? (const char *)from + i : "\xEF\xBF\xBD", n ? n : 3);
        to += n ? n : 3;
        i += n ? n : 1;
    }
    clean[to] = 0;
    return (tg_text){clean, to};
}

static tg_text format(const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) return tg_copy("", 0);
    char *text = tg_alloc((size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    return tg_clean(text, (size_t)length);
}

/* ---- Arguments and the result ---- */

yyjson_val *tg_arguments(tg_call *call) { return call->arguments; }

yyjson_val *tg_arg(tg_call *call, const char *name) { return yyjson_obj_get(call->arguments, name); }

static void refuse(tg_call *call, const char *name, yyjson_val *found, const char *wanted) {
    if (call->refused) return;
    tg_fail(call, TG_INVALID_ARGUMENTS, "/%s: is of type %s and not %s", name, yyjson_get_type_desc(found), wanted);
    call->refused = true;
}

tg_text tg_arg_text_or(tg_call *call, const char *name, const char *fallback) {
    yyjson_val *found = tg_arg(call, name);
    if (yyjson_is_str(found)) return (tg_text){yyjson_get_str(found), yyjson_get_len(found)};
    if (found && !yyjson_is_null(found)) refuse(call, name, found, "string");
    return (tg_text){fallback, strlen(fallback)};
}

tg_text tg_arg_text(tg_call *call, const char *name) { return tg_arg_text_or(call, name, ""); }

int64_t tg_arg_int(tg_call *call, const char *name, int64_t fallback) {
    yyjson_val *found = tg_arg(call, name);
    if (yyjson_is_sint(found) || (yyjson_is_uint(found) && yyjson_get_uint(found) <= INT64_MAX)) return yyjson_get_sint(found);
    if (yyjson_is_real(found)) {
        /* In JSON Schema, 4.0 and 1e3 are integers. */
        double real = yyjson_get_real(found);
        if (real == floor(real) && fabs(real) <= 9007199254740992.0) return (int64_t)real;
    }
    if (found && !yyjson_is_null(found)) refuse(call, name, found, "integer of 64 bits");
    return fallback;
}

double tg_arg_number(tg_call *call, const char *name, double fallback) {
    yyjson_val *found = tg_arg(call, name);
    if (yyjson_is_num(found)) return yyjson_get_num(found);
    if (found && !yyjson_is_null(found)) refuse(call, name, found, "number");
    return fallback;
}

bool tg_arg_bool(tg_call *call, const char *name, bool fallback) {
    yyjson_val *found = tg_arg(call, name);
    if (yyjson_is_bool(found)) return yyjson_get_bool(found);
    if (found && !yyjson_is_null(found)) refuse(call, name, found, "boolean");
    return fallback;
}

yyjson_mut_doc *tg_doc(tg_call *call) { return call->doc; }

yyjson_mut_val *tg_string(tg_call *call, const void *ptr, size_t len) {
    tg_text clean = tg_clean(ptr, len);
    return yyjson_mut_strn(call->doc, clean.ptr, clean.len);
}

/* ---- Failures ---- */

static void fail(tg_call *call, tg_kind kind, tg_text why) {
    if (call->refused) return; /* the caller can fix the first problem */
    call->failed = true;
    call->kind = kind;
    call->why = why;
}

yyjson_mut_val *tg_fail(tg_call *call, tg_kind kind, const char *text, ...) {
    va_list arguments;
    va_start(arguments, text);
    fail(call, kind, format(text, arguments));
    va_end(arguments);
    return NULL;
}

/* ---- The call ---- */

tg_text tg_id(const tg_call *call) { return call->wire->id; }
tg_text tg_tool_name(const tg_call *call) { return call->wire->tool; }
tg_text tg_idempotency_key(const tg_call *call) { return call->wire->idempotency_key; }
uint32_t tg_attempt(const tg_call *call) { return call->wire->attempt; }

static tg_text member(yyjson_val *object, const char *name) {
    yyjson_val *found = yyjson_obj_get(object, name);
    if (!yyjson_is_str(found)) return (tg_text){"", 0};
    return (tg_text){yyjson_get_str(found), yyjson_get_len(found)};
}

tg_scope tg_scope_of(tg_call *call) {
    yyjson_doc *doc = yyjson_read(call->wire->scope.ptr, call->wire->scope.len, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    yyjson_val *context = yyjson_obj_get(root, "context");
    return (tg_scope){
        .conversation = member(root, "conversation"),
        .turn = member(root, "turn"),
        .caller = member(root, "caller"),
        .approver = member(root, "approver"),
        .context = yyjson_is_null(context) ? NULL : context,
    };
}

void tg_progress(tg_call *call, const char *message, double fraction) { tg_report(call, message, fraction, NULL); }

void tg_report(tg_call *call, const char *message, double fraction, yyjson_mut_val *data) {
    (void)call;
    size_t len = 0;
    char *text = data ? yyjson_mut_val_write(data, 0, &len) : NULL;
    tg_text written = {text, len};
    tg_host_progress(tg_clean(message, strlen(message)), fraction, text ? &written : NULL);
}

void tg_log(tg_call *call, tg_level level, const char *text, ...) {
    (void)call;
    va_list arguments;
    va_start(arguments, text);
    tg_host_log(level, format(text, arguments));
    va_end(arguments);
}

bool tg_stop_requested(tg_call *call) {
    (void)call;
    return tg_host_stop_requested();
}

/* ---- From and to the interface ---- */

static tg_text printed(const char *text, ...) {
    va_list arguments;
    va_start(arguments, text);
    tg_text made = format(text, arguments);
    va_end(arguments);
    return made;
}

static int by_name(const void *one, const void *other) {
    yyjson_val *const *a = one, *const *b = other;
    size_t a_len = yyjson_get_len(*a), b_len = yyjson_get_len(*b);
    if (a_len != b_len) return a_len < b_len ? -1 : 1;
    return memcmp(yyjson_get_str(*a), yyjson_get_str(*b), a_len);
}

/* The place of a duplicate key, or no text. yyjson takes the first value, and the host and the approver see the last. No tool may
 * run with arguments that nobody has seen. */
static tg_text doubled(yyjson_val *value) {
    size_t index, count;
    yyjson_val *key, *inner;
    if (yyjson_is_arr(value)) {
        yyjson_arr_foreach(value, index, count, inner) {
            tg_text place = doubled(inner);
            if (place.ptr) return printed("/%zu%s", index, place.ptr);
        }
    }
    if (!yyjson_is_obj(value)) return (tg_text){0};
    yyjson_val **names = tg_alloc(yyjson_obj_size(value) * sizeof *names);
    yyjson_obj_foreach(value, index, count, key, inner) {
        tg_text place = doubled(inner);
        if (place.ptr) return printed("/%s%s", yyjson_get_str(key), place.ptr);
        names[index] = key;
    }
    qsort(names, count, sizeof *names, by_name);
    for (index = 1; index < count; index++)
        if (!by_name(&names[index - 1], &names[index])) return printed("/%s", yyjson_get_str(names[index]));
    free(names);
    return (tg_text){0};
}

static tg_outcome failed(tg_kind kind, tg_text why) { return (tg_outcome){.kind = kind, .text = why}; }

tg_outcome tg_carry_out(const tg_wire_call *wire) {
    const tg_tool *tool = NULL;
    for (size_t i = 0; i < tg_tool_count && !tool; i++)
        if (strlen(tg_tools[i].name) == wire->tool.len && !memcmp(tg_tools[i].name, wire->tool.ptr, wire->tool.len))
            tool = &tg_tools[i];
    if (!tool || !tool->run) {
        static const char why[] = "this plugin has no server tool with this name";
        return failed(TG_INVALID_ARGUMENTS, tg_copy(why, sizeof(why) - 1));
    }
    yyjson_read_err error;
    yyjson_doc *arguments = yyjson_read_opts((char *)(uintptr_t)wire->arguments.ptr, wire->arguments.len, 0, NULL, &error);
    if (!arguments) return failed(TG_INVALID_ARGUMENTS, tg_copy(error.msg, strlen(error.msg)));
    tg_text twice = doubled(yyjson_doc_get_root(arguments));
    if (twice.ptr) return failed(TG_INVALID_ARGUMENTS, printed("%s: duplicate key", twice.ptr));
    tg_call call = {.wire = wire, .arguments = yyjson_doc_get_root(arguments), .doc = yyjson_mut_doc_new(NULL)};
    if (!call.doc) abort();
    yyjson_mut_val *result = tool->run(&call);
    if (call.refused || (!result && call.failed)) return failed(call.kind, call.why);
    if (!result) {
        static const char why[] = "the tool returned no result and no reason";
        return failed(TG_FAILED, tg_copy(why, sizeof(why) - 1));
    }
    yyjson_write_err problem;
    tg_text text = {0};
    text.ptr = yyjson_mut_val_write_opts(result, 0, NULL, &text.len, &problem);
    if (text.ptr) return (tg_outcome){.ok = true, .text = text};
    tg_log(&call, TG_ERROR, "the result cannot be written: %s", problem.msg);
    tg_fail(&call, TG_FAILED, "the result cannot be written: %s", problem.msg);
    return failed(call.kind, call.why);
}

/* Puts the JSON text of a schema under a key. */
static bool put_json(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *text) {
    yyjson_doc *read = yyjson_read(text, strlen(text), 0);
    yyjson_mut_val *value = read ? yyjson_val_mut_copy(doc, yyjson_doc_get_root(read)) : NULL;
    return value && yyjson_mut_obj_add_val(doc, object, key, value);
}

tg_text tg_options_of(const tg_tool *tool, const char **wrong) {
    *wrong = NULL;
    const char *given = tool->options ? tool->options : "{}";
    yyjson_doc *read = yyjson_read(given, strlen(given), 0);
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = read ? yyjson_val_mut_copy(doc, yyjson_doc_get_root(read)) : NULL;
    if (!yyjson_mut_is_obj(root)) {
        *wrong = "`options` is not a JSON object";
        return tg_copy(given, strlen(given)); /* unchanged: the host reports the place */
    }
    const struct {
        const char *key, *text;
    } texts[] = {{"title", tool->title}, {"prompt", tool->prompt}, {"risk", tool->risk}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].text) yyjson_mut_obj_add_str(doc, root, texts[i].key, texts[i].text);
    if (tool->timeout_ms) yyjson_mut_obj_add_uint(doc, root, "timeout_ms", tool->timeout_ms);
    if (tool->expires_ms) yyjson_mut_obj_add_uint(doc, root, "expires_ms", tool->expires_ms);
    if (tool->durable) yyjson_mut_obj_add_true(doc, root, "durable");
    if (tool->result && !put_json(doc, root, "result", tool->result)) *wrong = "`result` is not JSON";
    if (tool->read_only || tool->destructive || tool->idempotent) {
        yyjson_mut_val *hints = yyjson_mut_obj_get(root, "hints");
        if (!hints) hints = yyjson_mut_obj_add_obj(doc, root, "hints");
        if (tool->read_only) yyjson_mut_obj_add_true(doc, hints, "read_only");
        if (tool->destructive) yyjson_mut_obj_add_true(doc, hints, "destructive");
        if (tool->idempotent) yyjson_mut_obj_add_true(doc, hints, "idempotent");
    }
    tg_text text = {0};
    text.ptr = yyjson_mut_val_write(root, 0, &text.len);
    if (text.ptr) return text;
    *wrong = "a text of the options is not UTF-8";
    return tg_copy("", 0);
}
