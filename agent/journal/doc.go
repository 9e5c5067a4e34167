// Package journal is the agent's durable memory: an append-only file of opaque
// payloads in one folder. It decides whether the file found on disk is whole,
// has a torn tail, or is corrupt, and under which journal identifier the agent
// goes on. It does not know the meaning of the payloads (agent/ledger does) and
// does not decide when to sync or compact (the agent's loop does).
//
// # Folder
//
//	lock           held with flock for as long as the journal is open; holds the owner's pid
//	journal        the file
//	journal.new    a file not yet in force; left over by a crash, overwritten
//	journal.corrupt-N  a file that Options.NewJournal moved aside
//	doubt          the next Open must take a new identifier (see Journal.Condemn)
//
// # File
//
// A header of 64 bytes, then records without padding, then zeros, which are
// preallocated room. All numbers are little endian.
//
//	header: magic[8] version:u32 flags:u32 id[16] counter:u64 base:u64 size:u64 zero[4] crc:u32
//	record: length:u32 sequence:u64 crc:u32 payload[length]
//
// Sequences count up by one from base+1. Both checksums are CRC-32C: the
// header's over its first 60 bytes, a record's over the file's id, length,
// sequence and payload, so that no record of another journal is taken for one
// of this. A length of zero ends the records. size is the file's size when it
// was made, its preallocated room included: a shorter one was truncated.
// Version 1, which is read and gone on with until the next rewrite, has no
// size, and no id in its records' checksums.
//
// # Meaning of a fault
//
// A write that a crash cut short, or that never reached the disk, leaves a
// tail that is bad and has nothing valid behind it, or a page of zeros with
// later pages behind it (pages of an unsynced write reach the disk in any
// order). Such a tail is cut, and since a promise may have been cut with it
// the journal gets a new identifier (PROTOCOL.md section 1); so it does where
// the file is shorter than it was made. Any other bad record with valid ones
// behind it cannot come from a crash: CorruptError.
//
// One loss leaves no trace: whole records at the end that read as zeros. Only
// the operating system's end loses the writes in its page cache, and with it
// the kernel's boot identifier changes, and so the incarnation.
package journal
