// Package resource is Muster's vocabulary of amounts: base units, names of
// resources, typed identifiers, what a member asks for (Request) and what it
// is given (Assignment).
//
// It decides nothing. It parses and prints quantities, adds them without
// overflow and compares them; whether a request fits is package fit's
// business, whether it may run is coordinator/quota's.
//
// Standard library only: no I/O, no clock, no goroutine.
package resource
