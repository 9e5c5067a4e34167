//go:build cgo && linux

package nvml

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// use measures a card and each of its MIG instances. The card's partitions must
// have been read. A value that the driver does not support is unknown, and so is
// a value that the card cannot have, which is a warning. The driver measures the
// percentage neither of a card in MIG mode nor of an instance.
func (d *discovery) use(c *card) []devices.Use {
	list := []devices.Use{d.useOf(c, c.handle, c.device.UUID, c.device.Memory)}
	if c.device.MIG.Enabled {
		d.eachInstance(c, func(m devices.MIGInstance, handle nvml.Device) {
			list = append(list, d.useOf(c, handle, m.UUID, m.Memory))
		})
	}
	return list
}

// useOf measures a card or an instance with this much memory.
func (d *discovery) useOf(c *card, handle nvml.Device, uuid string, size resource.Bytes) devices.Use {
	told := devices.Use{UUID: uuid, Percent: d.percentOf(c, handle), Memory: d.memoryOf(c, handle)}
	judged, ok := told.Within(size)
	if !ok {
		d.warnf("%v: the driver reports %d percent and %d bytes in use of %s, which has %d: what is too much is unknown", c, told.Percent, told.Memory, uuid, size)
	}
	return judged
}

func (d *discovery) percentOf(c *card, handle nvml.Device) int {
	const call = "nvmlDeviceGetUtilizationRates"
	if d.lacks(call) {
		return devices.UnknownUse
	}
	d.asking(call, c)
	rates, ret := handle.GetUtilizationRates()
	if !d.measured(c, call, ret) {
		return devices.UnknownUse
	}
	return int(rates.Gpu)
}

// memoryOf asks by version 2, which does not count the memory that the driver
// reserves for itself, where the library has version 2.
func (d *discovery) memoryOf(c *card, handle nvml.Device) resource.Bytes {
	bytes := func(n uint64) resource.Bytes { return resource.Bytes(min(n, math.MaxInt64)) }
	const first, second = "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"
	switch {
	case !d.lacks(second):
		d.asking(second, c)
		if memory, ret := handle.GetMemoryInfo_v2(); d.measured(c, second, ret) {
			return bytes(memory.Used)
		}
	case !d.lacks(first):
		d.asking(first, c)
		if memory, ret := handle.GetMemoryInfo(); d.measured(c, first, ret) {
			return bytes(memory.Used)
		}
	}
	return devices.UnknownUse
}

// measured reports whether a question about the use was answered.
func (d *discovery) measured(c *card, call string, ret nvml.Return) bool {
	ok := d.ok(c, ret)
	if !ok && !isUnsupported(ret) && !isLost(ret) && !isGone(ret) {
		d.warnf("%v: use: %s: %v: unknown", c, call, answer(ret))
	}
	return ok
}
