// Package limits bounds every field of the messages of proto/muster/v1 and
// proto/scheduler/v1: the bytes and characters of texts, the number of entries
// of lists and maps, the range of numbers, the values of enumerations, and the
// bytes of a whole message. The table has one limit per field; a field without
// a limit fails the package's tests and is refused at run time.
//
// Admit judges one message. ServerOptions and DialOptions put Admit behind each
// receive of a gRPC server or client, so that a handler never sees a message
// beyond its limits. Before a message is decoded, the size and the number of
// elements are counted on its bytes, so that a small message cannot take much
// memory.
//
// Three rules hold for all messages:
//   - A value beyond its limit is refused with a *Violation, which names the
//     field and the value and is InvalidArgument as a gRPC status.
//   - Fields that this version does not know are dropped, not refused: a newer
//     peer may send them. Dropped fields are neither kept nor sent on.
//   - In text for people, characters that control a terminal are replaced, not
//     refused: a tab in a reason must not cut an agent off.
//
// The package does not decide whether the values of a message fit together
// (package wire does) or which callers may send a message (package rpcauth
// does).
package limits
