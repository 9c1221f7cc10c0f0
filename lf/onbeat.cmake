# For `cmake-include` in a target block; Onbeat.lf brings it. lfc copies this file, so what it names
# is found through the package that `make install` puts beside the libraries.
find_package(onbeat REQUIRED)
include(${onbeat_lf}/sources.cmake)
onbeat_lf_sources(${LF_MAIN_TARGET} member.c reactors.c)
