//go:build cgo && linux

package nvml

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

const mebibyte = 1 << 20

// migUUID is the character that UUIDs of instances have under drivers before
// R470, "MIG-GPU-…/1/0", and those of GPUs have not.
const migUUID = "/"

// maxMIGPlaces bounds how many places for instances a card is asked for: a
// driver names 7, and 14 with compute instances of their own.
const maxMIGPlaces = 4 * devices.MaxMIGInstances

// partitions reads the card's MIG mode and instances, and whether that failed.
// Drivers before R450 know no MIG, cards before Ampere have none. A card whose
// mode cannot be read counts as partitioned without instances, so that it is
// not handed out whole.
func (d *discovery) partitions(c *card) (state devices.MIG, doubtful bool) {
	if !d.has("nvmlDeviceGetMigMode") {
		return devices.MIG{}, false
	}
	d.asking("nvmlDeviceGetMigMode", c)
	mode, _, ret := c.handle.GetMigMode()
	switch {
	case isUnsupported(ret):
		return devices.MIG{}, false
	case !d.ok(c, ret):
		d.warnf("%v: MIG mode: nvmlDeviceGetMigMode: %v: taken as on, without instances", c, answer(ret))
		return devices.MIG{Enabled: true}, true
	case mode != nvml.DEVICE_MIG_ENABLE:
		return devices.MIG{}, false
	}
	state = devices.MIG{Enabled: true}
	for _, symbol := range []string{"nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetAttributes_v2"} {
		if !d.has(symbol) {
			d.warnf("%v: MIG is enabled but the driver's library has no %s: instances unknown", c, symbol)
			return state, true
		}
	}
	d.asking("nvmlDeviceGetMaxMigDeviceCount", c)
	places, ret := c.handle.GetMaxMigDeviceCount()
	if !d.ok(c, ret) {
		d.warnf("%v: count MIG instances: nvmlDeviceGetMaxMigDeviceCount: %v: instances unknown", c, answer(ret))
		return state, true
	}
	state.Instances, doubtful = d.instances(c, min(places, maxMIGPlaces))
	return state, doubtful
}

// isUnsupported recognizes the answers of a card or a kernel driver that lacks the function that
// was asked for.
func isUnsupported(ret nvml.Return) bool {
	return ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.ERROR_FUNCTION_NOT_FOUND
}

// instances reads those at the card's places, and whether one failed.
func (d *discovery) instances(c *card, places int) (list []devices.MIGInstance, doubtful bool) {
	seen := map[string]bool{}
	for i := range places {
		instance, there, fault := d.instance(c, i)
		switch {
		case fault != "":
			d.warnf("%v: MIG instance %d left out: %s", c, i, fault)
			doubtful = true
		case !there:
		case seen[instance.UUID]:
			d.warnf("%v: MIG instance %d left out: another has its UUID %s", c, i, instance.UUID)
		case len(list) == devices.MaxMIGInstances:
			d.warnf("%v: MIG instance %d (%s) left out: at most %d are supported", c, i, instance.UUID, devices.MaxMIGInstances)
		default:
			seen[instance.UUID] = true
			list = append(list, instance)
		}
	}
	return list, doubtful
}

// instance reads the MIG device at the given place, if there is one.
func (d *discovery) instance(c *card, place int) (instance devices.MIGInstance, there bool, fault string) {
	d.asking("nvmlDeviceGetMigDeviceHandleByIndex", c)
	handle, ret := c.handle.GetMigDeviceHandleByIndex(place)
	switch {
	case ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INVALID_ARGUMENT:
		return instance, false, "" // no instance at this place
	case !d.ok(c, ret):
		return instance, false, fmt.Sprintf("handle: nvmlDeviceGetMigDeviceHandleByIndex: %v", answer(ret))
	}
	d.asking("nvmlDeviceGetUUID", c)
	uuid, ret := handle.GetUUID()
	switch {
	case !d.ok(c, ret):
		return instance, false, fmt.Sprintf("UUID: nvmlDeviceGetUUID: %v", answer(ret))
	case uuidFault(uuid, migUUID) != "":
		return instance, false, "UUID: nvmlDeviceGetUUID: " + uuidFault(uuid, migUUID)
	}
	d.asking("nvmlDeviceGetAttributes_v2", c)
	attributes, ret := handle.GetAttributes()
	switch {
	case !d.ok(c, ret):
		return instance, false, fmt.Sprintf("attributes: nvmlDeviceGetAttributes_v2: %v", answer(ret))
	case attributes.MemorySizeMB > uint64(resource.MaxMemory)/mebibyte:
		return instance, false, fmt.Sprintf("memory: %d MiB are more than can be counted", attributes.MemorySizeMB)
	}
	name := ""
	if !d.lacks("nvmlDeviceGetName") {
		d.asking("nvmlDeviceGetName", c)
		if text, ret := handle.GetName(); d.ok(c, ret) {
			name = text
		}
	}
	return devices.MIGInstance{
		UUID:    uuid,
		Profile: printable(profileName(name, attributes, c.device.Memory)),
		Memory:  resource.Bytes(attributes.MemorySizeMB * mebibyte),
	}, true, ""
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
