package devices

import "slices"

// Running has the processes on one device, or on one MIG instance of a device in
// MIG mode, as the driver reports them.
type Running struct {
	UUID string // the GPU's, or the instance's
	// PIDs are of the processes, in the driver's PID namespace, ascending and
	// each once; nil where nothing runs. Compute and graphics processes count.
	PIDs []int
}

// Equal reports whether both say the same.
func (r Running) Equal(s Running) bool { return r.UUID == s.UUID && slices.Equal(r.PIDs, s.PIDs) }
