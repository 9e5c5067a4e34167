package rpc

import (
	"slices"

	"github.com/musterd/muster/coordinator/record"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/wire/limits"
)

// kubeletReport reads the pool of a host's kubelet out of a heartbeat, nil for none.
// Each device and at most limits.MaxKubeletContainers containers count, once; a state
// that is not known drops the device.
func kubeletReport(m *schedulerv1.KubeletReport) *record.KubeletReport {
	if m == nil {
		return nil
	}
	r := &record.KubeletReport{MoreContainers: int(max(0, m.GetMoreContainers()))}
	named := 0
	for _, d := range m.GetDevices()[:min(len(m.GetDevices()), 2*limits.MaxKubeletPool)] {
		known := slices.ContainsFunc(r.Devices, func(o record.KubeletDevice) bool { return o.UUID == d.GetUuid() })
		if known || d.GetUuid() == "" || !slices.Contains(record.KubeletStates, d.GetState()) {
			continue
		}
		device := record.KubeletDevice{UUID: d.GetUuid(), State: d.GetState(), Configured: d.GetConfigured(), Holder: d.GetHolder(), Since: max(0, d.GetSince())}
		for _, c := range d.GetContainers() {
			if named++; named > limits.MaxKubeletContainers {
				r.MoreContainers++
				continue
			}
			device.Containers = append(device.Containers, record.KubeletContainer{Namespace: c.GetNamespace(), Pod: c.GetPod(), Container: c.GetContainer(), Unit: c.GetUnit()})
		}
		r.Devices = append(r.Devices, device)
	}
	return r
}
