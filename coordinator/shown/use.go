package shown

import (
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// use shows the use of a device or of a MIG instance with this much memory: nil
// and "" where the driver does not report it, where the host claims a value that
// such a device cannot have, and while no coordinator hears the agent, since the
// last use says nothing about the present one.
func (n *Node) use(uuid string, size resource.Bytes) (percent *int, memory string) {
	i := slices.IndexFunc(n.Told.Devices, func(u record.DeviceUse) bool { return u.UUID == uuid })
	if i < 0 || !n.isHeard() {
		return nil, ""
	}
	now, _ := devices.Use(n.Told.Devices[i]).Within(size)
	if now.Percent != devices.UnknownUse {
		percent = &now.Percent
	}
	if now.Memory != devices.UnknownUse {
		memory = resource.FormatBytes(now.Memory)
	}
	return percent, memory
}
