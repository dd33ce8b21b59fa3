/* Converts bytes to text and back. Decoding invalid text returns `false` and the position of the mistake. */
#ifndef CODECS_H
#define CODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The formats: two hex digits per byte; base64 of RFC 4648, section 4 (padded) or 5 (for URLs, unpadded). */
typedef enum { HEX, BASE64, BASE64URL } codec;

/* The largest number of characters, without a NUL. */
size_t encoded_size(size_t len);

/* Writes the text and returns its length. */
size_t encode(codec codec, const uint8_t *bytes, size_t len, char *text);

/* Writes at most `len` bytes and sets their number. Base64 padding is optional; white space is not allowed. `wrong` is the position of
 * the first invalid character, or `len` if the text ends too early. */
bool decode(codec codec, const char *text, size_t len, uint8_t *bytes, size_t *count, size_t *wrong);

#endif
