#include "CUnicodeData.h"

#include <stdint.h>

/* The release program contains Foundation, because GRDB imports it, and with Foundation ICU's data: 34 MB of languages,
   calendars and alphabets. Nothing in the program asks for them. Where Package.swift is told under which name Foundation's
   library has them, a table without any entry stands in their place; where it is not, this file is empty. A question that
   came all the same would get the answer that there is no such data.

   The layout is that of a table of contents of ICU, "ToCP" version 1 (udata.h: UDataInfo, in a header of ucmndata.h). */
#ifdef KEYHAUL_UNICODE_DATA

struct table {
  uint16_t headerSize;
  uint8_t magic[2];
  uint16_t infoSize;
  uint16_t reserved;
  uint8_t isBigEndian, isEBCDIC, unitSize, reservedToo;
  uint8_t format[4], formatVersion[4], dataVersion[4];
  uint8_t padding[8];
  uint32_t entryCount;
  uint32_t entries[3];
};

extern const struct table KEYHAUL_UNICODE_DATA;

_Alignas(16) const struct table KEYHAUL_UNICODE_DATA = {
  .headerSize = 32,
  .magic = {0xda, 0x27},
  .infoSize = 20,
  .isBigEndian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
  .unitSize = 2,
  .format = {'T', 'o', 'C', 'P'},
  .formatVersion = {1},
};

#endif
