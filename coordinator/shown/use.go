package shown

import (
	"slices"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// use shows the use of a device or of a MIG instance with this much memory: nil
// and "" where the driver does not report it, where the host claims a value that
// such a device cannot have, and while no stream to the agent is open, since the
// last use says nothing about the present one.
func (s *Stream) use(uuid string, size resource.Bytes) (percent *int, memory string) {
	i := slices.IndexFunc(s.Uses, func(u devices.Use) bool { return u.UUID == uuid })
	if i < 0 || !s.Connected {
		return nil, ""
	}
	now, _ := s.Uses[i].Within(size)
	if now.Percent != devices.UnknownUse {
		percent = &now.Percent
	}
	if now.Memory != devices.UnknownUse {
		memory = resource.FormatBytes(now.Memory)
	}
	return percent, memory
}
