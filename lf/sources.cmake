# onbeat_lf_sources(TARGET FILE...): builds sources of this directory into a program of lfc, once
# however many files include this.
function(onbeat_lf_sources target)
  get_target_property(there ${target} SOURCES)
  foreach(file ${ARGN})
    set(file "${onbeat_lf}/src/${file}")
    if(NOT file IN_LIST there)
      target_sources(${target} PRIVATE "${file}")
    endif()
  endforeach()
  target_include_directories(${target} PRIVATE "${onbeat_lf}/include")
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_link_libraries(${target} PRIVATE onbeat::onbeat)
endfunction()
