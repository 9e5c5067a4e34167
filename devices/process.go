package devices

import (
	"slices"

	"github.com/musterd/muster/resource"
)

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

// ProcessUse is the use of a device by one process, as the driver measures it.
type ProcessUse struct {
	PID     int
	Percent int            // of the driver's sample period, or UnknownUse
	Memory  resource.Bytes // or UnknownUse
}
