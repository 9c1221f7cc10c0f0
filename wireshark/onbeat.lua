-- Shows Wireshark the stream header of Onbeat's frames: IEEE 1722-2016 4.4.4 with the subtype
-- EF_STREAM, which Wireshark itself takes no further than the subtype.
--
--   wireshark -X lua_script:wireshark/onbeat.lua FILE
--
-- or copied into Wireshark's folder of personal Lua plugins (Help, About, Folders).
--
-- A frame does not say whether its message has a trailer (docs/integrity.md), nor whether it carries
-- a fragment of a longer message (docs/channels.md): the preferences name the streams of which it is
-- so, by their ids in hexadecimal, or `all`.

local EF_STREAM = 0x7f
local HEADER = 24
local FRAGMENT_HEADER = 4

local onbeat = Proto("onbeat", "Onbeat stream")
local fields = {
  stream_valid = ProtoField.bool("onbeat.sv", "Stream id valid", 8, nil, 0x80),
  timestamp_valid = ProtoField.bool("onbeat.tv", "Timestamp valid", 8, nil, 0x01),
  sequence = ProtoField.uint8("onbeat.sequence", "Sequence number"),
  number = ProtoField.uint16("onbeat.number", "Message number, or that of the frame"),
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
  length = ProtoField.uint16("onbeat.length", "Stream data length"),
  fragment = ProtoField.uint16("onbeat.fragment", "Fragment, from 0"),
  fragments = ProtoField.uint16("onbeat.fragments", "Fragments of the message"),
  message = ProtoField.bytes("onbeat.message", "Message"),
  key = ProtoField.uint8("onbeat.key", "Key number"),
  counter = ProtoField.uint64("onbeat.counter", "Counter"),
  epoch = ProtoField.uint64("onbeat.epoch", "Epoch of the talker", base.HEX),
  tag = ProtoField.bytes("onbeat.tag", "Authentication tag"),
  crc = ProtoField.uint32("onbeat.crc", "CRC", base.HEX),
}
onbeat.fields = fields
onbeat.prefs.crc = Pref.string("Streams with a CRC", "", "Stream ids in hexadecimal, or all")
onbeat.prefs.authenticated = Pref.string("Authenticated streams", "",
  "Stream ids in hexadecimal, or all")
onbeat.prefs.long = Pref.string("Streams with messages in fragments", "",
  "Stream ids in hexadecimal, or all")

-- Whether a preference names the stream, given as 16 digits.
local function names(preference, stream)
  if preference == "all" then return true end
  for word in preference:gmatch("%x+") do
    if string.rep("0", 16 - #word) .. word:lower() == stream then return true end
  end
  return false
end

-- Shows the trailer at the end of the stream data, and gives its length.
local function trailer(tree, data, stream)
  local from = data:len()
  if names(onbeat.prefs.authenticated, stream) and from >= 32 then
    from = from - 32
    tree:add(fields.key, data(from, 1))
    tree:add(fields.counter, data(from + 2, 6))
    tree:add(fields.epoch, data(from + 8, 8))
    tree:add(fields.tag, data(from + 16, 16))
  elseif names(onbeat.prefs.crc, stream) and from >= 8 then
    from = from - 8
    tree:add(fields.counter, data(from, 4), UInt64(data(from, 4):uint()))
    tree:add(fields.crc, data(from + 4, 4))
  end
  return data:len() - from
end

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
  if length > 0 then
    local stream = tostring(buffer(4, 8))
    local message = length - trailer(tree, buffer(HEADER, length), stream)
    local from = HEADER
    if message > FRAGMENT_HEADER and names(onbeat.prefs.long, stream) then
      tree:add(fields.fragment, buffer(from, 2))
      tree:add(fields.fragments, buffer(from + 2, 2))
      from, message = from + FRAGMENT_HEADER, message - FRAGMENT_HEADER
    end
    if message > 0 then tree:add(fields.message, buffer(from, message)) end
  end
  packet.cols.info = string.format("Stream 0x%s, message %d", tostring(buffer(4, 8)), number)
  return HEADER + length
end

DissectorTable.get("ieee1722.subtype"):add(EF_STREAM, onbeat)
