/* yyjson, with the parts left out that toolgate.h leaves out. */
#include "toolgate.h"

#include "vendor/yyjson/yyjson.c"
