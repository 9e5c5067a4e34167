// Package registry knows the names of resources: those that Muster has built in, those
// that operators create and those that registered nodes declare. It decides which of
// several declarations of a name counts, and on which nodes the name is in conflict with
// it. It judges a name that a person wrote: known, misspelt, or of a resource that nobody
// hands out.
//
// It does not judge amounts, and it stores nothing: the caller makes a Registry of
// the nodes of one moment.
//
// Pure: no clock, no I/O, no goroutine, no log.
package registry
