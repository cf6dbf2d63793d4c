#ifndef CUNICODEDATA_H
#define CUNICODEDATA_H
/* Nothing to call: the linker takes what unicode_data.c defines. */
#endif
