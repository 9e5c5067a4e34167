// Package projector carries the changes of the store into the history. It decides which
// coordinator does that, from which revision on, when rows go to the database and when
// to the spool, and what becomes of a history whose store was restored.
//
// Which rows a change makes is history/narrate; how rows are written is a Warehouse.
// Nothing waits for a projector but the compaction of the store, within bounds.
package projector
