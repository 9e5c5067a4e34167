// Package events derives the events of objects (Created, Scheduled, Evicted,
// NotReady) from their changes, and keeps the newest events within bounds. Nothing
// is stored: each coordinator has a Log of the changes that it follows, and the same
// changes give the same events everywhere. A Log that begins has the events of which
// the objects still have the instants, and the instant since which it has all others.
//
// The messages are made of the fields of the object itself, which its readers see
// anyway: no message has the name of another tenant's work.
//
// The package has no clock, goroutine or log.
package events
