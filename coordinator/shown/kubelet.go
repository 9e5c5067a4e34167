package shown

import (
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// kubeletPool shows the operators' part of a kubelet's pool, nil for none.
func kubeletPool(p *record.KubeletPool) *api.KubeletPool {
	if p == nil {
		return nil
	}
	return &api.KubeletPool{Add: slices.Clone(p.Add), Remove: slices.Clone(p.Remove)}
}

// kubeletStatus shows the pool of a kubelet as its agent has reported it, nil for none.
func kubeletStatus(r *record.KubeletReport) *api.KubeletStatus {
	if r == nil {
		return nil
	}
	s := &api.KubeletStatus{MoreContainers: r.MoreContainers}
	for _, d := range r.Devices {
		device := api.KubeletDevice{UUID: d.UUID, State: d.State, Configured: d.Configured, Holder: d.Holder}
		if d.Since > 0 {
			device.Since = time.Unix(d.Since, 0).UTC().Format(time.RFC3339)
		}
		for _, c := range d.Containers {
			device.Containers = append(device.Containers, api.KubeletContainer(c))
		}
		s.Devices = append(s.Devices, device)
	}
	return s
}
