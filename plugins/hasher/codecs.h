/* Bytes as text and back. Decoding invalid text gives `false` and the position of the mistake. */
#ifndef CODECS_H
#define CODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What they write: two digits of hex a byte; base64 of RFC 4648, section 4 (padded) or 5 (for URLs, unpadded). */
typedef enum { HEX, BASE64, BASE64URL } codec;

/* How many characters at most, without a NUL. */
size_t encoded_size(size_t len);

/* Writes the text and gives its length. */
size_t encode(codec codec, const uint8_t *bytes, size_t len, char *text);

/* Writes at most `len` bytes and says how many. Base64 may be padded or not; white space is no part of it. `wrong` is the first
 * character that cannot be, or `len` where the text ends too early. */
bool decode(codec codec, const char *text, size_t len, uint8_t *bytes, size_t *count, size_t *wrong);

#endif
