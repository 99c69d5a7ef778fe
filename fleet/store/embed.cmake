# SPDX-License-Identifier: BSD-2-Clause
# cmake -D IN=FILE.lua -D OUT=FILE.c -P embed.cmake: writes the text of the file, without its
# comment lines, as redis_script. As an array of bytes, because compilers need not accept such a long
# string.
file(READ "${IN}" text)
string(REGEX REPLACE "(^|\n)--[^\n]*" "\\1" text "${text}")
string(REGEX REPLACE "\n\n+" "\n" text "${text}")
file(WRITE ${OUT}.txt "${text}")
file(READ ${OUT}.txt bytes HEX)
file(REMOVE ${OUT}.txt)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "#include \"fleet/store/redis_script.h\"\n\nconst char redis_script[] = {${bytes}0};\n")
