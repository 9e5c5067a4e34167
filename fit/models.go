package fit

import (
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// modelsOf are the names under which quotas count the devices, by device.
func modelsOf(inv *devices.Inventory) []resource.Name {
	models := make([]resource.Name, len(inv.Devices))
	for i := range inv.Devices {
		if i > 0 && inv.Devices[i].Model == inv.Devices[i-1].Model {
			models[i] = models[i-1]
		} else {
			models[i] = resource.GPUOf(inv.Devices[i].Model)
		}
	}
	return models
}

// Models is Models of each host of the kind.
func (k *Kind) Models() []resource.Name { return k.host.models }

// Models returns, by device, the names under which quotas count it: resource.GPUOf of its
// product. The caller must not change the slice.
func (h *Host) Models() []resource.Name { return h.models }
