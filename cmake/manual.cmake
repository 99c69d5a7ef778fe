# SPDX-License-Identifier: BSD-2-Clause
# Manual pages, in man/ of the build directory: section 3 from the public headers, others from
# Markdown (docs/man/NAME.SECTION.md), those of tools from their --help. And the HTML reference, in
# reference/, by target reference.

# The date on the pages is that of the release.
file(STRINGS ${PROJECT_SOURCE_DIR}/packaging/changelog weir_release REGEX "^ -- " LIMIT_COUNT 1)
string(REGEX REPLACE "^.*>  " "" weir_release "${weir_release}")
execute_process(COMMAND date -u -d ${weir_release} +%F
  OUTPUT_VARIABLE weir_release OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

set(weir_man ${PROJECT_BINARY_DIR}/man)
set(weir_man_source ${PROJECT_SOURCE_DIR}/docs/man)
find_program(LOWDOWN lowdown)
find_program(HELP2MAN help2man)
find_program(DOXYGEN doxygen)

# weir_page(NAME.SECTION COMPONENT COMMAND... FILTER... DEPENDS FILE...): the command prints
# the page; the filter is what sed makes of it.
function(weir_page page component)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "COMMAND;FILTER;DEPENDS")
  string(REGEX REPLACE "^.*\\." "" section ${page})
  set(file ${weir_man}/man${section}/${page})
  file(MAKE_DIRECTORY ${weir_man}/man${section})
  add_custom_command(OUTPUT ${file}
    COMMAND ${arg_COMMAND} > ${file}.unfiltered
    COMMAND sed ${arg_FILTER} ${file}.unfiltered > ${file}
    DEPENDS ${arg_DEPENDS} ${PROJECT_SOURCE_DIR}/packaging/changelog
    VERBATIM)
  add_custom_target(man-${page} ALL DEPENDS ${file})
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
endfunction()

# All headers together, as their pages refer to each other. Those of libweir-fleet are in a folder of
# their own, fleet/, and go with it.
function(weir_pages_of_headers)
  file(GLOB headers CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/include/weir/*.h ${PROJECT_SOURCE_DIR}/include/weir/*.hpp)
  set(man3 ${weir_man}/man3)
  set(script ${weir_man_source}/section3.awk)
  set(filter ${weir_man_source}/lowdown.sed)
  set(fleet_man3 ${weir_man}/fleet/man3)
  set(fleet_headers)
  if(WEIR_FLEET)
    file(GLOB fleet_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fleet/include/weir/*.h)
  endif()
  add_custom_command(OUTPUT ${weir_man}/man3.stamp
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${man3} ${fleet_man3}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${man3} ${fleet_man3}
    COMMAND awk -v version=${PROJECT_VERSION} -v date=${weir_release} -v filter=${filter}
            -f ${script} library=weir out=${man3} ${headers}
            library=weir-fleet out=${fleet_man3} ${fleet_headers}
    COMMAND ${CMAKE_COMMAND} -E touch ${weir_man}/man3.stamp
    DEPENDS ${headers} ${fleet_headers} ${script} ${filter} ${PROJECT_SOURCE_DIR}/packaging/changelog
    VERBATIM)
  add_custom_target(man-3 ALL DEPENDS ${weir_man}/man3.stamp)
  install(DIRECTORY ${man3} DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT weir_development)
  if(WEIR_FLEET)
    install(DIRECTORY ${fleet_man3} DESTINATION ${CMAKE_INSTALL_MANDIR}
      COMPONENT weir_fleet_development)
  endif()
endfunction()

# An HTML reference of all public headers, by doxygen.
function(weir_reference)
  set(doxyfile ${PROJECT_BINARY_DIR}/Doxyfile)
  file(GLOB folders ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/*/include
       ${PROJECT_SOURCE_DIR}/adapters/*/include)
  list(JOIN folders " " WEIR_PUBLIC_FOLDERS)
  configure_file(${PROJECT_SOURCE_DIR}/docs/reference/Doxyfile.in ${doxyfile} @ONLY)
  add_custom_target(reference COMMAND ${DOXYGEN} ${doxyfile} VERBATIM)
endfunction()

function(weir_pages_of_markdown)
  file(GLOB sources CONFIGURE_DEPENDS ${weir_man_source}/*.md)
  foreach(source ${sources})
    cmake_path(GET source STEM LAST_ONLY page)
    string(REGEX REPLACE "\\.[^.]*$" "" name ${page})
    string(REGEX REPLACE "^.*\\." "" section ${page})
    weir_page(${page} weir_development
      COMMAND lowdown -s -Tman --parse-no-intraemph -M title=${name} -M section=${section}
              -M date=${weir_release} -M "source=weir ${PROJECT_VERSION}" -M "volume=weir manual"
              ${source}
      FILTER -f ${weir_man_source}/lowdown.sed
      DEPENDS ${source} ${weir_man_source}/lowdown.sed)
  endforeach()
endfunction()

# weir_tool(TARGET [COMPONENT]): a program that is installed, in weir_tools or another component. Its
# page is its --help, and what is in docs/man/NAME.h2m, where NAME is at least: that of the target, or
# of the file if that is another.
function(weir_tool target)
  set(component weir_tools)
  if(ARGC GREATER 1)
    set(component ${ARGV1})
  endif()
  install(TARGETS ${target} RUNTIME COMPONENT ${component})
  get_target_property(name ${target} OUTPUT_NAME)
  if(NOT name)
    set(name ${target})
  endif()
  if(NOT WEIR_MAN)
    return()
  elseif(NOT HELP2MAN OR CMAKE_CROSSCOMPILING)
    message(STATUS "The manual page of ${name} is left out: it needs help2man, and to run it")
    return()
  endif()
  set(more ${weir_man_source}/${name}.h2m)
  set(title "${name} 1 ${weir_release} \"weir ${PROJECT_VERSION}\" \"weir manual\"")
  weir_page(${name}.1 ${component}
    COMMAND help2man --no-info --version-string=${PROJECT_VERSION} --include ${more}
            $<TARGET_FILE:${target}>
    FILTER "s/^[.]TH .*/.TH ${title}/"
    DEPENDS ${target} ${more})
endfunction()

if(DOXYGEN)
  weir_reference()
endif()
if(WEIR_MAN AND LOWDOWN)
  weir_pages_of_headers()
  weir_pages_of_markdown()
elseif(WEIR_MAN)
  message(STATUS "Manual pages of headers and concepts are left out: they need lowdown")
endif()
