# SPDX-License-Identifier: BSD-2-Clause
# cmake -D OUT=FILE.c -D HEADER=FILE.h -D NAME=FUNCTION -P embed.cmake FILE.cfg...: generate the
# function NAME, declared in HEADER, which returns the text of each file by index.
set(text "/* Made from files of scenarios. */\n#include \"${HEADER}\"\n\n#include <stddef.h>\n\n")
string(APPEND text "static const char *const texts[] = {\n")
foreach(i RANGE ${CMAKE_ARGC})
  set(file "${CMAKE_ARGV${i}}")
  if(NOT file MATCHES "\\.cfg$")
    continue()
  endif()
  file(READ "${file}" content)
  string(REPLACE "\\" "\\\\" content "${content}")
  string(REPLACE "\"" "\\\"" content "${content}")
  string(REPLACE "\n" "\\n\"\n\t\"" content "${content}")
  string(APPEND text "\t\"${content}\",\n")
endforeach()
string(APPEND text "\tNULL,\n};\n\nconst char *${NAME}(unsigned index)\n{\n")
string(APPEND text "\treturn index < sizeof(texts) / sizeof(texts[0]) ? texts[index] : NULL;\n}\n")
file(WRITE ${OUT} "${text}")
