# SPDX-License-Identifier: BSD-2-Clause
# Builds for arm64 with Debian's cross compiler, and runs programs under qemu:
#   scripts/install-packages arm64 && scripts/arm64-sysroot
#   cmake -B build/arm64 --toolchain cmake/aarch64-linux-gnu.cmake
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

cmake_path(SET CMAKE_SYSROOT NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-arm64)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})

# A child that a thread of qemu 7.2 forks may wait forever for the lock of glib's slices that another thread
# held; malloc() has no such locks.
set(CMAKE_CROSSCOMPILING_EMULATOR
  env G_SLICE=always-malloc qemu-aarch64 -L ${CMAKE_SYSROOT})
