# The examples with an installed Tessera; there, this file is their CMakeLists.txt:
#   cmake -S PREFIX/share/tessera/examples -B build -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build
cmake_minimum_required(VERSION 3.20)
project(tessera_examples CXX)
find_package(tessera REQUIRED)
file(GLOB EXAMPLES CONFIGURE_DEPENDS *.cpp */*.cpp)
foreach(EXAMPLE ${EXAMPLES})
  get_filename_component(NAME ${EXAMPLE} NAME_WE)
  add_executable(example_${NAME} ${EXAMPLE})
  target_link_libraries(example_${NAME} PRIVATE tessera::tessera)
endforeach()
