/* yyjson without the parts that toolgate.h leaves out. */
#include "toolgate.h"

#include "yyjson.c"
