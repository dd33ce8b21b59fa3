/* Tests of tools, natively: no host, no WebAssembly. Compile the plugin, a test, and the SDK's sources with any C compiler:
 *
 *     cc -I SDK plugin.c plugin_test.c SDK/[all].c -o test -lm && ./test
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

/* What calls find outside, and how they are known. What is left out makes no difference. The key-value store lasts for as long
 * as the program; tg_test_forget empties it. */
typedef struct {
    const char *id, *idempotency_key, *scope; /* the scope is a JSON object */
    uint32_t attempt;
    unsigned stop_at;          /* tg_stop_requested says yes from the time on that it is asked so many times; 0 is never */
    const tg_header *config;   /* names and values, up to one whose name is NULL */
    /* Answers the requests; false or NULL denies them. */
    bool (*http)(const tg_request *request, tg_response *response);
    void (*before_swap)(void); /* called before a value is swapped, to be faster; NULL is nobody */
} tg_test_world_t;
extern tg_test_world_t tg_test_world;

/* What came of a call. */
typedef struct {
    bool ok;
    tg_kind kind;       /* where it failed */
    const char *text;   /* the result as JSON, or why there is none */
    const char *notes;  /* progress and log, a line each: `progress 0.50 MESSAGE DATA`, `warn MESSAGE` */
} tg_test_run_t;

/* Makes a call. */
tg_test_run_t tg_test_run(const char *tool, const char *arguments);

/* Empties the key-value store; puts a value into it, or NULL to remove the key; looks at one (NULL: there is none). */
void tg_test_forget(void);
void tg_test_store(const char *key, const char *value);
const char *tg_test_stored(const char *key);

/* Each of these is a test: it prints what is wrong, and tg_test_end tells. */
void tg_test_that(bool is_so, const char *what);
void tg_test_text(const char *text, const char *wanted, const char *what);
void tg_test_result(const char *tool, const char *arguments, const char *wanted);
void tg_test_failure(const char *tool, const char *arguments, tg_kind kind, const char *part_of_message);
void tg_test_declarations(void);
void tg_test_examples(const char *path);

/* Prints how many tests there were; 0 if all went well, for `return` in main. */
int tg_test_end(void);

#ifdef __cplusplus
}
#endif
#endif
