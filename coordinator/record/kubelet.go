package record

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/grant"
)

// KubeletReport is the pool of a host's kubelet as its agent has reported it: for
// people alone.
type KubeletReport struct {
	Devices []KubeletDevice `json:"devices,omitempty"` // ascending by UUID
	// MoreContainers counts the containers beyond the most that a report names.
	MoreContainers int `json:"moreContainers,omitempty"`
}

// KubeletDevice is a device that the kubelet hands out, or is to hand out.
type KubeletDevice struct {
	UUID  string `json:"uuid"`
	State string `json:"state"` // one of KubeletStates
	// Configured: the agent's configuration has the device in its pool.
	Configured bool `json:"configured,omitempty"`
	// Holder has a device that is Joining: as api.KubeletDevice says, "" where nothing has it.
	Holder string `json:"holder,omitempty"`
	// Since is when the device became Free or Lent, in Unix seconds; 0 for unknown.
	Since      int64              `json:"since,omitempty"`
	Containers []KubeletContainer `json:"containers,omitempty"`
}

// KubeletContainer is a container that has a unit of a device.
type KubeletContainer struct {
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Container string `json:"container,omitempty"`
	Unit      string `json:"unit,omitempty"`
}

// The states of a KubeletDevice.
const (
	// KubeletFree is in the pool, and no container has it.
	KubeletFree = "Free"
	// KubeletLent is in the pool, and a container may have it.
	KubeletLent = "Lent"
	// KubeletJoining is to be in the pool, and other work has it, or the host lacks it.
	KubeletJoining = "Joining"
	// KubeletLeaving is not to be in the pool, and a container may still have it.
	KubeletLeaving = "Leaving"
)

// KubeletStates are all.
var KubeletStates = []string{KubeletFree, KubeletLent, KubeletJoining, KubeletLeaving}

// Equal reports whether two reports say the same.
func (r *KubeletReport) Equal(o *KubeletReport) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.MoreContainers == o.MoreContainers && slices.EqualFunc(r.Devices, o.Devices, func(a, b KubeletDevice) bool {
		return a.UUID == b.UUID && a.State == b.State && a.Configured == b.Configured && a.Holder == b.Holder && a.Since == b.Since &&
			slices.Equal(a.Containers, b.Containers)
	})
}

func (r *KubeletReport) check() error {
	if r == nil {
		return nil
	}
	containers := 0
	for i, d := range r.Devices {
		if d.UUID == "" || !slices.Contains(KubeletStates, d.State) || d.Since < 0 {
			return fmt.Errorf("kubelet.devices[%d]: uuid %q, state %q, since %d", i, d.UUID, d.State, d.Since)
		}
		containers += len(d.Containers)
	}
	if len(r.Devices) > 2*grant.MaxKubeletPool || containers > grant.MaxKubeletContainers || r.MoreContainers < 0 {
		return fmt.Errorf("kubelet: %d devices, %d containers and %d more, want at most %d and %d", len(r.Devices), containers, r.MoreContainers, 2*grant.MaxKubeletPool, grant.MaxKubeletContainers)
	}
	return nil
}
