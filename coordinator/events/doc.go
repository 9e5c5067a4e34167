// Package events derives the events of objects (Scheduled, Queued, Evicted,
// NotReady) from their changes, and keeps the newest ones within bounds. Nothing
// is stored: each coordinator has a Log of the changes that it follows. A Log that
// begins has the events that the objects still tell of, and the instant since
// which it has all others.
//
// The package has no clock, goroutine or log.
package events
