/* The generated bindings, in a component. */
#ifdef __wasm__
#include "tools.c"

/* The bindings refer to an object file with the type of the component. `toolgate build` embeds the type instead. */
void __component_type_object_force_link_tools(void) {}
#endif
