# SPDX-License-Identifier: BSD-2-Clause
# gRPC, for its adapter and for weir-fleet-serve: the target gRPC::grpc++, if it and a C++ compiler are
# installed, and the programs PROTOC and GRPC_CPP_PLUGIN. pkg-config would take ten seconds for all that
# gRPC requires.
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
  # It says of each package where it was not found, before it says where it was.
  set(weir_level ${CMAKE_MESSAGE_LOG_LEVEL})
  set(CMAKE_MESSAGE_LOG_LEVEL NOTICE)
  find_package(gRPC 1.51 CONFIG QUIET)
  set(CMAKE_MESSAGE_LOG_LEVEL ${weir_level})
endif()
if(gRPC_FOUND)
  message(STATUS "Found gRPC, version ${gRPC_VERSION}")
endif()
find_program(PROTOC protoc)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin)
