package devices

import "strings"

// LostReason begins the reason of a device that is gone, and of no other. The
// ledger and the protocol carry a device's health and its reason; by these words
// a coordinator finds the grants that have lost a device.
const LostReason = "the device was lost"

// IsLost reports whether a device with this health and reason is gone.
func IsLost(h Health, reason string) bool {
	return h == Tainted && strings.HasPrefix(reason, LostReason)
}
