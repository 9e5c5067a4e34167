// Package spool keeps batches of the history in files while the database is away. It
// decides nothing about what is in a batch or when one is written.
//
// A spool is a folder of segments of at most 8 MiB. A segment is a series of frames:
// length and CRC-32C of the payload (4 bytes each, little endian), then the payload:
// the format's version (1 byte) and a history.Batch as JSON, compressed by DEFLATE.
// An appended batch is fsynced before Append returns. A frame that was cut off by a
// crash is dropped at the next Open, with everything behind it.
package spool
