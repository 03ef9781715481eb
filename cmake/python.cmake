# The Python package: python/tessera and the library of the room c_api, which ctypes loads. Of a build it is in
# build/python, for PYTHONPATH; ./dev wheel makes a wheel of the build that is relocatable.
add_library(tessera_c SHARED $<TARGET_OBJECTS:tessera_c_api>)
target_link_libraries(tessera_c PRIVATE tessera_user_code)
set(SHOWN ${PROJECT_SOURCE_DIR}/cmake/c_api.map)
target_link_options(tessera_c PRIVATE LINKER:--version-script=${SHOWN} LINKER:--gc-sections)
set(PYTHON ${PROJECT_BINARY_DIR}/python/tessera)
set_target_properties(tessera_c PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS ${SHOWN} LIBRARY_OUTPUT_DIRECTORY ${PYTHON})
if(TESSERA_RELOCATABLE)  # as in library.cmake; the libraries that it needs are in the wheel
  target_link_options(tessera_c PRIVATE LINKER:--disable-new-dtags LINKER:--strip-all)
  set_target_properties(tessera_c PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../tessera.libs")
endif()
file(MAKE_DIRECTORY ${PYTHON})
file(GLOB SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/tessera/*.py python/tessera/py.typed)
foreach(SOURCE ${SOURCES})
  cmake_path(GET SOURCE FILENAME NAME)
  file(CREATE_LINK ${SOURCE} ${PYTHON}/${NAME} SYMBOLIC)
endforeach()
