# SPDX-License-Identifier: BSD-2-Clause
# cmake -D IN=page.html -D OUT=page.c -P embed.cmake: the page, as the module has it.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n\t" bytes "${bytes}")
file(WRITE ${OUT} "/* Made from page.html. */\n#include \"module.h\"\n\n"
  "const char status_page[] = {\n\t${bytes}\n};\n"
  "const size_t status_page_size = sizeof(status_page);\n")
