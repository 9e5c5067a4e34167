package devices

import "github.com/musterd/muster/resource"

// UnknownUse stands for a use that the driver does not report. Unknown is never 0.
const UnknownUse = -1

// MaxUses is the most devices and MIG instances of one host.
const MaxUses = MaxDevices * (1 + MaxMIGInstances)

// Use is the present use of one device, or of one MIG instance, as its driver
// measures it.
type Use struct {
	UUID string // the GPU's, or the instance's
	// Percent is the part of the driver's last sample period during which the
	// device computed, 0 to 100, or UnknownUse.
	Percent int
	// Memory is the device memory in use, or UnknownUse.
	Memory resource.Bytes
}

// IsKnown reports whether the driver measures the device at all.
func (u Use) IsKnown() bool { return u.Percent != UnknownUse || u.Memory != UnknownUse }

// Within returns the use with only those values that a device with this much
// memory can have; a size of 0 is an unknown size. ok is false where a value had
// to go.
func (u Use) Within(size resource.Bytes) (judged Use, ok bool) {
	judged, ok = u, true
	if u.Percent != UnknownUse && (u.Percent < 0 || u.Percent > 100) {
		judged.Percent, ok = UnknownUse, false
	}
	if size == 0 {
		size = resource.MaxMemory
	}
	if u.Memory != UnknownUse && (u.Memory < 0 || u.Memory > size) {
		judged.Memory, ok = UnknownUse, false
	}
	return judged, ok
}
