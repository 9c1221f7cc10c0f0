// An instruction as it is executed: resolved when it is loaded, with what its identifiers mean.
`define NC_ROW 106
// Of a guard that compares words the immediate has the right one's: see NC_RIGHT. Of `receive` it
// has the address of the message's first word.
`define NC_ROW_IMMEDIATE 31:0
`define NC_ROW_ADDRESS 43:32
`define NC_ROW_WORDS 52:44
// The address of the buffer's first word, or of the word that a guard looks at; whose it is, and
// whether that buffer has two banks.
`define NC_ROW_LEFT 64:53
`define NC_ROW_LEFT_ID 72:65
`define NC_ROW_LEFT_BANKED 73
`define NC_ROW_ID 81:74
`define NC_ROW_CONDITION 86:82
`define NC_ROW_NEGATED 87
`define NC_ROW_COMPARES_WORDS 85
`define NC_ROW_CREATE 88
`define NC_ROW_SEND 89
`define NC_ROW_RECEIVE 90
`define NC_ROW_FUTURE 91
`define NC_ROW_HALT 92
`define NC_ROW_MASTER 93
`define NC_ROW_SLAVE 94
`define NC_ROW_BRANCH 95
`define NC_ROW_NOP 96
// A trap that the word and the tables show, and whether there is one: then it is of no kind.
`define NC_ROW_TRAP 100:97
`define NC_ROW_TRAPS 103
// Before it is issued it waits for the words of the last `create`, for the way out; also for a trap.
`define NC_ROW_WAITS_DATA 104
`define NC_ROW_WAITS_SEND 105
// Whether the immediate is 0, or 1.
`define NC_ROW_ZERO 101
`define NC_ROW_ONE 102
`define NC_RIGHT_ADDRESS 11:0
`define NC_RIGHT_ID 19:12
`define NC_RIGHT_BANKED 20
