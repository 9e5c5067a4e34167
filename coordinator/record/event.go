package record

import "github.com/musterd/muster/resource"

// EventType says what happened to a key.
type EventType uint8

// The event types.
const (
	EventPut EventType = iota
	EventDelete
)

// Event is one key's change. KV of a delete has the key and, as ModRev, the
// revision of the delete; nothing else.
type Event struct {
	Type EventType
	KV   KV
	// Prev is the key before the change, where the watch asked for it; nil if it
	// did not exist or its revision has been compacted.
	Prev *KV
}

// Batch is all the events below a watched prefix of exactly one revision, in
// the store's order. Without events it is progress: nothing below the prefix
// up to Revision is outstanding.
type Batch struct {
	Revision resource.Revision
	Events   []Event
	// Err is set in the last batch of a watch that cannot go on, e.g. a
	// *CompactedError. Such a batch has neither revision nor events.
	Err error
}
