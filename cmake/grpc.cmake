# SPDX-License-Identifier: BSD-2-Clause
# gRPC, for its adapter and for weir-fleet-serve: the target gRPC::grpc++, if it and a C++ compiler are
# installed, and the programs PROTOC and GRPC_CPP_PLUGIN. pkg-config would take ten seconds for all that
# gRPC requires.
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
  find_package(gRPC 1.51 CONFIG QUIET)
endif()
find_program(PROTOC protoc)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin)
