// Package resource is Muster's vocabulary of amounts: base units, names of
// resources, typed identifiers, the request of a member (Request) and the resources
// that it gets (Assignment).
//
// The package makes no decisions. It parses and prints quantities, adds them without
// overflow and compares them; whether a request fits is package fit's
// business, whether it may run is coordinator/quota's.
//
// Standard library only: no I/O, no clock, no goroutine.
package resource
