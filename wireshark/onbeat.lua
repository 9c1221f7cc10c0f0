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
  number = ProtoField.uint16("onbeat.number", "Message number"),
  instance = ProtoField.uint8("onbeat.instance", "Instance of the talker"),
  uncertain = ProtoField.bool("onbeat.tu", "Timestamp uncertain", 8, nil, 0x01),
  stream_id = ProtoField.uint64("onbeat.stream_id", "Stream id", base.HEX),
  timestamp = ProtoField.uint32("onbeat.timestamp", "Capture time, lower 32 bits (ns)"),
  asks = ProtoField.bool("onbeat.asks", "Needs an acknowledgement", 8, nil, 0x80),
  met = ProtoField.bool("onbeat.met", "Has met in this round", 8, nil, 0x40),
  round = ProtoField.uint8("onbeat.round", "Round of the rendezvous", base.DEC, nil, 0x3f),
  acknowledged_instance = ProtoField.uint8("onbeat.acknowledged_instance",
    "Acknowledged message: instance"),
  acknowledged = ProtoField.uint16("onbeat.acknowledged", "Acknowledged message: number"),
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
  if bit.band(buffer(16, 1):uint(), 0x3f) > 0 then
    tree:add(fields.asks, buffer(16, 1))
    tree:add(fields.met, buffer(16, 1))
    tree:add(fields.round, buffer(16, 1))
    tree:add(fields.acknowledged_instance, buffer(17, 1))
    tree:add(fields.acknowledged, buffer(18, 2))
  end
  tree:add(fields.length, buffer(20, 2))
  local instance = buffer(22, 1):uint()
  tree:add(fields.instance, buffer(22, 1))
  local number = buffer(2, 1):uint()
  -- Older talkers do not say which they are, and count to 255 only.
  if instance > 0 then number = number + 256 * buffer(23, 1):uint() end
  tree:add(fields.number, buffer(23, 1), number)
  local length = math.min(buffer(20, 2):uint(), buffer:len() - HEADER)
  if length > 0 then tree:add(fields.message, buffer(HEADER, length)) end
  packet.cols.info = string.format("Stream 0x%s, message %d", tostring(buffer(4, 8)), number)
  return HEADER + length
end

DissectorTable.get("ieee1722.subtype"):add(EF_STREAM, onbeat)
