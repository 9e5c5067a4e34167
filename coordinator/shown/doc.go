// Package shown renders the objects of the API. Its types are plain values, which every
// coordinator makes of the store's keys; a leader also makes those of units, for the
// answers to creations. It decides nothing, reads no clock and keeps nothing.
//
// Values are made for one answer, or kept by a follower. They point to records
// and documents of their maker, and nothing here changes those; an object that
// is rendered shares nothing that its maker changes later.
package shown

// Queued is a unit in the queue.
type Queued struct {
	Name     string // "namespace/name"
	Priority int32
	Members  int
}
