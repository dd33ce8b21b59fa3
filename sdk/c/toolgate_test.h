/* Native tests of tools, without a host or WebAssembly. `toolgate build` puts yyjson into build/c. Any C compiler will do:
 *
 *     cc -I SDK -I build/c plugin.c plugin_test.c SDK/[all].c -o test -lm && ./test
 *
 *     #include "toolgate_test.h"
 *
 *     int main(void) {
 *         tg_test_declarations();
 *         tg_test_result("word_count", TG_JSON({"text": "to be or not"}), "4");
 *         tg_test_failure("word_count", TG_JSON({"text": 4}), TG_INVALID_ARGUMENTS, "/text: is of type");
 *         tg_test_examples("examples.json");
 *         return tg_test_end();
 *     }
 */
#ifndef TOOLGATE_TEST_H
#define TOOLGATE_TEST_H

#include "toolgate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The end of a durable tool's wait for a person, an external system or other tools: TG_TEST_ANSWER(JSON) for tg_ask,
 * TG_TEST_APPROVAL(JSON) for tg_approve, whose JSON can be NULL to approve the value as it is, TG_TEST_RESULT(JSON) for
 * tg_await_external, TG_TEST_RETURNED(JSON) for tg_call_tools, whose JSON is the array that it returns,
 * {.end = TG_DENIED, .text = COMMENT}, or {.end = TG_EXPIRED}. */
typedef struct {
    tg_end end;         /* how it ends */
    const char *text;   /* the answer, the approved value, the result or the results as JSON, or the comment of a denial */
    tg_wait wait;       /* of TG_ANSWERED: the wait that it ends */
} tg_test_end_t;
#define TG_TEST_ANSWER(json) {.end = TG_ANSWERED, .text = json}
#define TG_TEST_APPROVAL(json) {.end = TG_ANSWERED, .text = json, .wait = TG_WAIT_APPROVE}
#define TG_TEST_RESULT(json) {.end = TG_ANSWERED, .text = json, .wait = TG_WAIT_EXTERNAL}
#define TG_TEST_RETURNED(json) {.end = TG_ANSWERED, .text = json, .wait = TG_WAIT_CALLS}

/* The identity of calls, and the capabilities that they find. Every member is optional. The key-value store lasts as long as the
 * program. tg_test_forget empties it. */
typedef struct {
    const char *id, *idempotency_key, *scope; /* the scope is a JSON object */
    uint32_t attempt;          /* the number of the attempt; 0 is the first one */
    unsigned stop_at;          /* tg_stop_requested returns true from this call of it on; 0 is never */
    const tg_header *config;   /* names and values; ends with one whose name is NULL */
    /* Answers requests. False or NULL denies them. */
    bool (*http)(const tg_request *request, tg_response *response);
    void (*before_swap)(void); /* runs before each swap, as a faster call; can be NULL */
    const tg_test_end_t *waits; /* the ends of a durable tool's waits, in order; sleeps end at once and need none */
    unsigned wait_count;       /* their number */
} tg_test_world_t;
extern tg_test_world_t tg_test_world;

/* The outcome of a call. */
typedef struct {
    bool ok;            /* whether there is a result */
    tg_kind kind;       /* of a failure */
    const char *text;   /* the result as JSON, or the message of the failure */
    const char *notes;  /* progress, log and waits, a line each: `progress 0.50 MESSAGE DATA`, `warn MESSAGE`, `ask QUESTION`, `sleep MS` */
} tg_test_run_t;

/* Makes a call with these arguments, a JSON text. */
tg_test_run_t tg_test_run(const char *tool, const char *arguments);

/* These empty the key-value store, write a value or remove it with NULL, and read a value, which is NULL if it is absent. */
void tg_test_forget(void);
void tg_test_store(const char *key, const char *value);
const char *tg_test_stored(const char *key);

/* Each of these is a test. It prints its failure, and tg_test_end counts it. */
/* The condition is true. */
void tg_test_that(bool is_so, const char *what);
/* The text is the wanted one. */
void tg_test_text(const char *text, const char *wanted, const char *what);
/* The call has this result, as JSON. */
void tg_test_result(const char *tool, const char *arguments, const char *wanted);
/* The call fails in this way. */
void tg_test_failure(const char *tool, const char *arguments, tg_kind kind, const char *part_of_message);
/* The declarations have none of the mistakes that a native test can find; `toolgate check` finds all. */
void tg_test_declarations(void);
/* The calls of an examples.json have their outcomes. */
void tg_test_examples(const char *path);

/* Prints the number of tests. Returns 0 if all passed, for `return` in main. */
int tg_test_end(void);

#ifdef __cplusplus
}
#endif
#endif
