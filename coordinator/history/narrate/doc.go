// Package narrate makes rows of the history from the changes of the store. Changes go
// in, revision by revision; a history.Batch comes out.
//
// A row follows from record keys alone: every id and every instant is in a record. So
// two narrators that follow the same changes make the same rows, and a narrator that
// loads all keys at a revision goes on exactly as one that has followed all changes up
// to there. The package has no clock, goroutine, log or I/O, and it decides nothing
// about when rows are written: that is history/projector.
//
// Slices of use are made from grants by history/usage.
package narrate
