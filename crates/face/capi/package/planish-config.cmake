# find_package(planish) defines planish::planish (shared) and planish::static, wherever the package lies.
get_filename_component(_planish_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET planish::planish)
  add_library(planish::planish SHARED IMPORTED)
  set_target_properties(planish::planish PROPERTIES
    IMPORTED_LOCATION "${_planish_prefix}/lib/libplanish.so"
    IMPORTED_SONAME "libplanish.so.0.1"
    INTERFACE_INCLUDE_DIRECTORIES "${_planish_prefix}/include")
endif()

if(NOT TARGET planish::static)
  add_library(planish::static STATIC IMPORTED)
  set_target_properties(planish::static PROPERTIES
    IMPORTED_LOCATION "${_planish_prefix}/lib/libplanish.a"
    INTERFACE_LINK_LIBRARIES "gcc_s;util;rt;pthread;m;dl"
    INTERFACE_INCLUDE_DIRECTORIES "${_planish_prefix}/include")
endif()

unset(_planish_prefix)
