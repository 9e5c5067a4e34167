// Package era decides whether a store is the store of before, or an older state after the
// restore of a backup (ADR 138). Each coordinator keeps a Known on disk, and each agent
// keeps the same facts in the journal: the newest revision, the mark of the newest term,
// a key at a revision, the last known restoration. Contradiction compares a Known with the
// store, and Declare writes the restoration into the store for all others.
//
// The package makes no decision about nodes, grants and terms: the readers of
// record.LastRestoredKey do. coordinator/store/etcd finds the losses during the life of a
// coordinator; the package only writes them down.
package era
