//go:build cgo && linux

package nvml

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
)

// running has the processes on a card, or on each of its instances where it is in
// MIG mode. Processes that the driver does not report are left out. The card's partitions
// must have been read.
func (d *discovery) running(c *card) []devices.Running {
	if !c.device.MIG.Enabled {
		pids, ok := d.processes(c, c.handle)
		if !ok {
			return nil
		}
		return []devices.Running{{UUID: c.device.UUID, PIDs: pids}}
	}
	var list []devices.Running
	d.eachInstance(c, func(m devices.MIGInstance, handle nvml.Device) {
		if pids, ok := d.processes(c, handle); ok {
			list = append(list, devices.Running{UUID: m.UUID, PIDs: pids})
		}
	})
	return list
}

// eachInstance calls do with each known instance of a card and its handle.
func (d *discovery) eachInstance(c *card, do func(devices.MIGInstance, nvml.Device)) {
	if len(c.device.MIG.Instances) == 0 {
		return // the functions for instances may be absent
	}
	d.asking("nvmlDeviceGetMaxMigDeviceCount", c)
	places, ret := c.handle.GetMaxMigDeviceCount()
	if !d.ok(c, ret) {
		return
	}
	for i := range min(places, maxMIGPlaces) {
		d.asking("nvmlDeviceGetMigDeviceHandleByIndex", c)
		handle, ret := c.handle.GetMigDeviceHandleByIndex(i)
		if !d.ok(c, ret) {
			continue // no instance at this place
		}
		d.asking("nvmlDeviceGetUUID", c)
		uuid, ret := handle.GetUUID()
		if !d.ok(c, ret) {
			continue
		}
		known := slices.IndexFunc(c.device.MIG.Instances, func(m devices.MIGInstance) bool { return m.UUID == uuid })
		if known >= 0 {
			do(c.device.MIG.Instances[known], handle)
		}
	}
}

// processes asks for those of a GPU or an instance, clients of a multi-process
// service among them. A device that has no graphics does not report that nothing
// is drawn on it.
func (d *discovery) processes(c *card, handle nvml.Device) (pids []int, ok bool) {
	for _, kind := range []string{"nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"} {
		list, ret := d.processesOf(c, handle, kind)
		if !d.ok(c, ret) {
			if isUnsupported(ret) {
				continue
			}
			if !isLost(ret) && !isGone(ret) {
				d.warnf("%v: processes: %s: %v: unknown", c, kind, answer(ret))
			}
			return nil, false
		}
		ok = true
		pids = append(pids, list...)
	}
	slices.Sort(pids)
	return slices.Compact(pids), ok
}

// processesOf calls one function, in the newest version that the library has.
func (d *discovery) processesOf(c *card, handle nvml.Device, kind string) ([]int, nvml.Return) {
	for _, version := range []string{"_v3", "_v2", ""} {
		call := kind + version
		if d.lacks(call) {
			continue
		}
		d.asking(call, c)
		size := processInfoSize
		if version == "" {
			size = processInfoSizeV1
		}
		return listProcesses(call, handle, size)
	}
	return nil, nvml.ERROR_FUNCTION_NOT_FOUND
}
