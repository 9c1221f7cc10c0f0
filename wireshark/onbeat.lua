-- Shows Wireshark the stream header of Onbeat's frames: IEEE 1722-2016 4.4.4 with the subtype
-- EF_STREAM, which Wireshark itself takes no further than the subtype.
--
--   wireshark -X lua_script:wireshark/onbeat.lua FILE
--
-- or copied into Wireshark's folder of personal Lua plugins (Help, About, Folders).

local EF_STREAM = 0x7f
local HEADER = 24

local onbeat = Proto("onbeat", "Onbeat stream")
local fields = {
  stream_valid = ProtoField.bool("onbeat.sv", "Stream id valid", 8, nil, 0x80),
  timestamp_valid = ProtoField.bool("onbeat.tv", "Timestamp valid", 8, nil, 0x01),
  sequence = ProtoField.uint8("onbeat.sequence", "Sequence number"),
  uncertain = ProtoField.bool("onbeat.tu", "Timestamp uncertain", 8, nil, 0x01),
  stream_id = ProtoField.uint64("onbeat.stream_id", "Stream id", base.HEX),
  timestamp = ProtoField.uint32("onbeat.timestamp", "Capture time, lower 32 bits (ns)"),
  acknowledged = ProtoField.uint32("onbeat.acknowledged", "Acknowledged capture time (ns)"),
  length = ProtoField.uint16("onbeat.length", "Message length"),
  message = ProtoField.bytes("onbeat.message", "Message"),
}
onbeat.fields = fields

function onbeat.dissector(buffer, packet, root)
  if buffer:len() < HEADER then return 0 end
  packet.cols.protocol = "Onbeat"
  local tree = root:add(onbeat, buffer())
  tree:add(fields.stream_valid, buffer(1, 1))
  tree:add(fields.timestamp_valid, buffer(1, 1))
  tree:add(fields.sequence, buffer(2, 1))
  tree:add(fields.uncertain, buffer(3, 1))
  tree:add(fields.stream_id, buffer(4, 8))
  tree:add(fields.timestamp, buffer(12, 4))
  tree:add(fields.acknowledged, buffer(16, 4))
  tree:add(fields.length, buffer(20, 2))
  local length = math.min(buffer(20, 2):uint(), buffer:len() - HEADER)
  if length > 0 then tree:add(fields.message, buffer(HEADER, length)) end
  packet.cols.info = string.format("Stream 0x%s, sequence %d", tostring(buffer(4, 8)),
    buffer(2, 1):uint())
  return HEADER + length
end

DissectorTable.get("ieee1722.subtype"):add(EF_STREAM, onbeat)
