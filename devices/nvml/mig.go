//go:build cgo && linux

package nvml

import (
	"fmt"
	"math"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

const mebibyte = 1 << 20

// partitions reads the card's MIG mode and instances. Drivers before R450 know
// no MIG, cards before Ampere have none.
func (d *discovery) partitions(c card) devices.MIG {
	if !d.has("nvmlDeviceGetMigMode") {
		return devices.MIG{}
	}
	mode, _, ret := c.handle.GetMigMode()
	if ret != nvml.SUCCESS {
		if ret != nvml.ERROR_NOT_SUPPORTED {
			d.warnf("%v: MIG mode: %v: taken as off", c, ret)
		}
		return devices.MIG{}
	}
	if mode != nvml.DEVICE_MIG_ENABLE {
		return devices.MIG{}
	}
	state := devices.MIG{Enabled: true}
	for _, symbol := range []string{"nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetAttributes_v2"} {
		if !d.has(symbol) {
			d.warnf("%v: MIG is enabled but the driver's library has no %s: instances unknown", c, symbol)
			return state
		}
	}
	count, ret := c.handle.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		d.warnf("%v: count MIG instances: %v: instances unknown", c, ret)
		return state
	}
	seen := map[string]bool{}
	for i := range count {
		instance, ok := d.instance(c, i)
		switch {
		case !ok:
		case seen[instance.UUID]:
			d.warnf("%v: MIG instance %d left out: another has its UUID %s", c, i, instance.UUID)
		default:
			seen[instance.UUID] = true
			state.Instances = append(state.Instances, instance)
		}
	}
	return state
}

// instance reads the MIG device at the given place, if there is one.
func (d *discovery) instance(c card, place int) (devices.MIGInstance, bool) {
	leaveOut := func(what string, reason any) (devices.MIGInstance, bool) {
		d.warnf("%v: MIG instance %d left out: %s: %v", c, place, what, reason)
		return devices.MIGInstance{}, false
	}
	handle, ret := c.handle.GetMigDeviceHandleByIndex(place)
	switch ret {
	case nvml.SUCCESS:
	case nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT:
		return devices.MIGInstance{}, false // no instance at this place
	default:
		return leaveOut("handle", ret)
	}
	uuid, ret := handle.GetUUID()
	switch {
	case ret != nvml.SUCCESS:
		return leaveOut("UUID", ret)
	case uuid == "":
		return leaveOut("UUID", "the driver reports an empty one")
	}
	attributes, ret := handle.GetAttributes()
	switch {
	case ret != nvml.SUCCESS:
		return leaveOut("attributes", ret)
	case attributes.MemorySizeMB > math.MaxInt64/mebibyte:
		return leaveOut("memory", fmt.Sprintf("%d MiB are more than can be counted", attributes.MemorySizeMB))
	}
	name, ret := handle.GetName()
	if ret != nvml.SUCCESS {
		name = ""
	}
	return devices.MIGInstance{
		UUID:    strings.ToValidUTF8(uuid, "?"),
		Profile: strings.ToValidUTF8(profileName(name, attributes, c.device.Memory), "?"),
		Memory:  resource.Bytes(attributes.MemorySizeMB * mebibyte),
	}, true
}

// profileName is the driver's own word where a MIG device's name holds it
// ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", since R470), else the name as NVIDIA
// forms it: compute slices where they are fewer, slices, and the instance's
// memory in eighths of the card's, rounded up, in whole GB.
func profileName(deviceName string, a nvml.DeviceAttributes, cardMemory resource.Bytes) string {
	if _, name, ok := strings.Cut(deviceName, " MIG "); ok && name != "" {
		return name
	}
	const gibibyte = 1 << 30
	gigabytes := uint64(0)
	if card := uint64(cardMemory); card > 0 {
		eighths := min((min(a.MemorySizeMB, card/mebibyte)*mebibyte*8+card-1)/card, 8)
		gigabytes = (eighths*((card+gibibyte-1)/gibibyte) + 4) / 8
	}
	name := fmt.Sprintf("%dg.%dgb", a.GpuInstanceSliceCount, gigabytes)
	if a.ComputeInstanceSliceCount < a.GpuInstanceSliceCount {
		name = fmt.Sprintf("%dc.%s", a.ComputeInstanceSliceCount, name)
	}
	return name
}
