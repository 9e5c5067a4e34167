//go:build cgo && linux

package nvml

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
)

// running is what runs on a card, or on each of its instances where it is in
// MIG mode. What the driver does not tell is left out. The card's partitions
// must have been read.
func (d *discovery) running(c *card) []devices.Running {
	for _, symbol := range []string{"nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"} {
		if !d.has(symbol) {
			return nil
		}
	}
	if !c.device.MIG.Enabled {
		pids, ok := d.processes(c, c.handle)
		if !ok {
			return nil
		}
		return []devices.Running{{UUID: c.device.UUID, PIDs: pids}}
	}
	var list []devices.Running
	if len(c.device.MIG.Instances) == 0 {
		return nil // the functions for instances may be absent
	}
	places, ret := c.handle.GetMaxMigDeviceCount()
	if !d.ok(c, ret) {
		return nil
	}
	for i := range min(places, maxMIGPlaces) {
		handle, ret := c.handle.GetMigDeviceHandleByIndex(i)
		if !d.ok(c, ret) {
			continue // no instance at this place
		}
		uuid, ret := handle.GetUUID()
		if !d.ok(c, ret) || !slices.ContainsFunc(c.device.MIG.Instances, func(m devices.MIGInstance) bool { return m.UUID == uuid }) {
			continue
		}
		if pids, ok := d.processes(c, handle); ok {
			list = append(list, devices.Running{UUID: uuid, PIDs: pids})
		}
	}
	return list
}

// processes asks for those of a GPU or an instance, clients of a multi-process
// service among them. A device that has no graphics does not tell that nothing
// is drawn on it.
func (d *discovery) processes(c *card, handle nvml.Device) (pids []int, ok bool) {
	for _, ask := range []func() ([]nvml.ProcessInfo, nvml.Return){handle.GetComputeRunningProcesses, handle.GetGraphicsRunningProcesses} {
		infos, ret := ask()
		if !d.ok(c, ret) {
			if isUnsupported(ret) {
				continue
			}
			return nil, false
		}
		ok = true
		for _, p := range infos {
			pids = append(pids, int(p.Pid))
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), ok
}
