/* Key-value data, configuration and requests. */
#include <string.h>

#include "toolgate_host.h"

/* The limit on lost swaps in a row. Each lost swap is another call's progress, so a popular key alone does not reach it. */
#define MAX_SWAPS 1000

static tg_text text_of(const char *text) { return tg_clean(text, strlen(text)); }

/* Returns whether it was done. If not, fails the call with the right kind. */
static bool done(tg_call *call, const char *what, tg_host_answer answer) {
    switch (answer.status) {
    case TG_HOST_OK:
        return true;
    case TG_HOST_DENIED:
        tg_fail(call, TG_FAILED, "the host does not allow %s: %s", what, answer.why.ptr);
        return false;
    case TG_HOST_INVALID:
        tg_fail(call, TG_FAILED, "%s cannot be done: %s", what, answer.why.ptr);
        return false;
    default:
        tg_fail(call, TG_UNAVAILABLE, "%s cannot be done now: %s", what, answer.why.ptr);
        return false;
    }
}

bool tg_kv_get(tg_call *call, const char *key, tg_bytes *value) {
    return done(call, "reading the key-value store", tg_host_kv_get(text_of(key), value));
}

bool tg_kv_set(tg_call *call, const char *key, const void *ptr, size_t len) {
    return done(call, "writing the key-value store", tg_host_kv_set(text_of(key), tg_copy(ptr, len)));
}

bool tg_kv_delete(tg_call *call, const char *key) {
    return done(call, "writing the key-value store", tg_host_kv_delete(text_of(key)));
}

bool tg_kv_increment(tg_call *call, const char *key, int64_t by, int64_t *sum) {
    return done(call, "writing the key-value store", tg_host_kv_increment(text_of(key), by, sum));
}

bool tg_kv_keys(tg_call *call, const char *prefix, tg_text **keys, size_t *count) {
    tg_text *all;
    size_t found, kept = 0, length = strlen(prefix);
    if (!done(call, "reading the key-value store", tg_host_kv_keys(&all, &found))) return false;
    for (size_t i = 0; i < found; i++)
        if (all[i].len >= length && !memcmp(all[i].ptr, prefix, length)) all[kept++] = all[i];
    *keys = all;
    *count = kept;
    return true;
}

bool tg_kv_update(tg_call *call, const char *key, tg_step step, void *context) {
    tg_host_cas cas;
    tg_bytes before;
    tg_host_answer answer = tg_host_kv_look(text_of(key), &cas, &before);
    for (int swaps = 0; swaps < MAX_SWAPS; swaps++) {
        tg_bytes after = {NULL, 0};
        if (!done(call, "reading the key-value store", answer) || !step(call, &before, &after, context)) return false;
        if (before.ptr && before.len == after.len && !memcmp(before.ptr, after.ptr, after.len)) return true;
        answer = tg_host_kv_swap(&cas, after);
        if (answer.status != TG_HOST_RACE) return done(call, "writing the key-value store", answer);
        answer = tg_host_kv_current(&cas, &before);
    }
    tg_fail(call, TG_UNAVAILABLE, "`%s` is being changed by too many calls at once", key);
    return false;
}

bool tg_config_get(tg_call *call, const char *name, tg_text *value) {
    return done(call, "reading the configuration", tg_host_config_get(text_of(name), value));
}

bool tg_http(tg_call *call, const tg_request *request, tg_response *response) {
    memset(response, 0, sizeof *response);
    return done(call, "the request", tg_host_http(request, response));
}

static bool same(const char *a, const char *b) {
    for (; *a && *b; a++, b++) {
        char x = *a >= 'A' && *a <= 'Z' ? (char)(*a + 32) : *a, y = *b >= 'A' && *b <= 'Z' ? (char)(*b + 32) : *b;
        if (x != y) return false;
    }
    return *a == *b;
}

const char *tg_header_of(const tg_response *response, const char *name) {
    for (const tg_header *header = response->headers; header && header->name; header++)
        if (same(header->name, name)) return header->value;
    return NULL;
}
