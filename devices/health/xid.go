package health

import (
	"slices"
)

// Effect is the class of an error by its meaning for the device.
type Effect uint8

const (
	// Application errors are the fault of a program, or of a program that ended: the
	// device is as good as before. They change nothing, however many there are.
	Application Effect = iota
	// Notice is of no consequence for the device's work; it changes nothing.
	Notice
	// Watch errors are such that the vendor lets work go on: the device is
	// suspect, and never tainted for them.
	Watch
	// Suspicious errors may be the device's fault or another's: one makes it
	// suspect, several within a window taint it.
	Suspicious
	// Fatal errors taint at once.
	Fatal
)

// Verdict is the meaning of an XID number for a device.
type Verdict struct {
	Effect Effect
	// Reset: the way back to ok is a reset of the device. A Fatal error then
	// taints until the reset; a device that is only watched or suspicious works
	// on as suspect until it.
	Reset bool
	// Name names the event, to be read after "XID n: ".
	Name string
	// Why is the reason for the class, "" where the source's word is taken as it
	// is.
	Why string
	// Source is the vendor's source: a document and its words for the remedy,
	// first at once and then on closer inspection. docs/health.md has the
	// addresses.
	Source string
}

// unknown is the verdict of numbers without a row: the vendor adds some with
// each generation, and most are faults of a part.
var unknown = Verdict{
	Effect: Suspicious, Name: "not in the vendor's catalog",
	Why: "a new number must neither stop a host nor go unseen", Source: "none",
}

// Unknown reports whether the number has no row in the catalogue.
func (v Verdict) Unknown() bool { return v == unknown }

// XID returns the verdict of an XID error number.
func XID(number uint64) Verdict {
	i, found := slices.BinarySearchFunc(catalog[:], number, func(r row, number uint64) int {
		switch {
		case r.last < number:
			return -1
		case r.first > number:
			return 1
		}
		return 0
	})
	if !found {
		return unknown
	}
	return catalog[i].Verdict
}
