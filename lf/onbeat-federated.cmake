# For `cmake-include` in the target block of a decentralised federation: its tagged messages go over
# the channels of the table that ONBEAT_LF_TABLE names when it runs.
find_package(onbeat REQUIRED)
include(${onbeat_lf}/sources.cmake)
onbeat_lf_sources(${LF_MAIN_TARGET} member.c federated.c peer.c table.c wire.c)
target_link_options(${LF_MAIN_TARGET} PRIVATE
  -Wl,--wrap=lf_connect_to_rti
  -Wl,--wrap=lf_send_tagged_message
  -Wl,--wrap=read_from_net_close_on_error)
