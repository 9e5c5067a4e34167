//go:build cgo && linux

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// clique is the group of GPUs that NVLink connects over hosts: the UUID of the cluster, as
// the fabric manager has it, and the number of the clique. "" where the GPU is of none: it
// has no such fabric, has not been registered there yet, or the registration has failed.
// NVSwitches of one host alone have the UUID of zeros.
func (d *discovery) clique(c *card) string {
	info, call, ret := d.fabric(c)
	switch {
	case call == "":
		return ""
	case !d.ok(c, ret):
		if !isUnsupported(ret) && !isLost(ret) && !isGone(ret) {
			d.warnf("%v: NVLink fabric: %s: %v: its NVLink domain is unknown", c, call, answer(ret))
		}
		return ""
	}
	switch info.State {
	case nvml.GPU_FABRIC_STATE_COMPLETED:
	case nvml.GPU_FABRIC_STATE_NOT_SUPPORTED, nvml.GPU_FABRIC_STATE_NOT_STARTED:
		return ""
	case nvml.GPU_FABRIC_STATE_IN_PROGRESS:
		d.warnf("%v: NVLink fabric: its registration is in progress: its NVLink domain is unknown", c)
		return ""
	default:
		d.warnf("%v: NVLink fabric: %s: the driver reports the state %d: its NVLink domain is unknown", c, call, info.State)
		return ""
	}
	if status := nvml.Return(info.Status); status != nvml.SUCCESS {
		d.warnf("%v: NVLink fabric: its registration has failed: %v: its NVLink domain is unknown", c, answer(status))
		return ""
	}
	if info.ClusterUuid == [nvml.GPU_FABRIC_UUID_LEN]uint8{} {
		return ""
	}
	u := info.ClusterUuid
	return fmt.Sprintf("%x-%x-%x-%x-%x.%d", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16], info.CliqueId)
}

// fabric asks by the newest function that the library has; call is "" where it has none.
func (d *discovery) fabric(c *card) (info nvml.GpuFabricInfo, call string, ret nvml.Return) {
	switch {
	case d.has("nvmlDeviceGetGpuFabricInfoV"):
		call = "nvmlDeviceGetGpuFabricInfoV"
		d.asking(call, c)
		newer, ret := c.handle.GetGpuFabricInfoV().V2()
		return nvml.GpuFabricInfo{ClusterUuid: newer.ClusterUuid, Status: newer.Status, CliqueId: newer.CliqueId, State: newer.State}, call, ret
	case d.has("nvmlDeviceGetGpuFabricInfo"):
		call = "nvmlDeviceGetGpuFabricInfo"
		d.asking(call, c)
		info, ret = c.handle.GetGpuFabricInfo()
	}
	return info, call, ret
}
