#include <stdint.h>

/* The program contains Foundation, because GRDB imports it, and with Foundation ICU's data: 34 MB of languages, calendars and
   alphabets. Nothing in the program asks for them. The packages are linked with this empty table instead (packaging/Makefile:
   --defsym). ICU then answers every question with "no such data". No other program uses the table, and the linker drops it.

   The layout is that of ICU's table of contents, "ToCP" version 1 (udata.h: UDataInfo, in a header of ucmndata.h). */
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

extern const struct table keyhaul_no_unicode_data;

_Alignas(16) const struct table keyhaul_no_unicode_data = {
  .headerSize = 32,
  .magic = {0xda, 0x27},
  .infoSize = 20,
  .isBigEndian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
  .unitSize = 2,
  .format = {'T', 'o', 'C', 'P'},
  .formatVersion = {1},
};
