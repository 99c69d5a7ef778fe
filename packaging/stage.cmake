# SPDX-License-Identifier: BSD-2-Clause
# stage.cmake - what Debian wants of installed files beyond what is installed everywhere. Run by
# cpack, when each component is in a folder of its own and not yet a package.
execute_process(
  COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/stage.sh ${CPACK_TEMPORARY_DIRECTORY}
  COMMAND_ERROR_IS_FATAL ANY)
