# cmake -D IN=FILE.lua -D OUT=FILE.c -P embed.cmake: the text of the file without its lines of
# comment, as redis_script.
file(READ "${IN}" text)
string(REGEX REPLACE "(^|\n)--[^\n]*" "\\1" text "${text}")
string(REGEX REPLACE "\n\n+" "\n" text "${text}")
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n\t\"" text "${text}")
file(WRITE ${OUT} "#include \"redis_script.h\"\n\nconst char redis_script[] =\n\t\"${text}\";\n")
