/* Hashes of a block of memory. */
#ifndef HASHES_H
#define HASHES_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const uint8_t *bytes, size_t len);               /* Castagnoli's polynomial (RFC 3720) */
uint64_t xxh64(const uint8_t *bytes, size_t len, uint64_t seed); /* XXH64 of the xxHash specification 0.1.1 */
void sha256(const uint8_t *bytes, size_t len, uint8_t digest[32]); /* FIPS 180-4 */

#endif
