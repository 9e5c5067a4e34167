package api

import (
	"slices"
	"strconv"
	"strings"
)

// KubeletPool is the operators' part of the pool of devices that the kubelet of a host
// hands out to pods. It wins over the agent's configuration device by device.
type KubeletPool struct {
	// Add are devices that are in the pool, by the UUIDs of GPUs and MIG instances: at
	// most 512.
	Add []string `json:"add,omitempty" example:"[GPU-6e8a5f2c-0000-4000-8000-000000000000]"`
	// Remove are devices that are not in the pool, though the agent's configuration may
	// list them: at most 512.
	Remove []string `json:"remove,omitempty" example:"[GPU-6e8a5f2c-0000-4000-8000-000000000001]"`
}

// KubeletStatus is the pool of a host's kubelet, as the agent has reported it.
type KubeletStatus struct {
	// Devices are the devices of the pool, and those that join or leave it, by UUID.
	Devices []KubeletDevice `json:"devices,omitempty"`
	// MoreContainers counts the containers beyond the 512 that a report names.
	MoreContainers int `json:"moreContainers,omitempty" unit:"containers" example:"3"`
}

// KubeletDevice is a device that the kubelet hands out, or is to hand out.
type KubeletDevice struct {
	// UUID is the driver's name of the GPU or MIG instance.
	UUID string `json:"uuid" example:"GPU-6e8a5f2c-0000-4000-8000-000000000000"`
	// State is the device's place: Free is in the pool, and no container has it; Lent is
	// in the pool, and a container may have it; Joining is to be in the pool, and waits
	// for other work to end, or the host does not have it; Leaving is not to be in the
	// pool any more, and waits for its containers to end.
	State string `json:"state" oneof:"Free,Lent,Joining,Leaving" example:"Lent"`
	// Configured marks a device of the pool in the agent's configuration.
	Configured bool `json:"configured,omitempty" example:"true"`
	// Holder is the work that has a device that is Joining: namespace/name of an
	// allocation, job namespace/name of a job, or another text where the work has no name.
	Holder string `json:"holder,omitempty" example:"default/train-0"`
	// Since is the time at which the device became Free or Lent.
	Since string `json:"since,omitempty" format:"time" example:"2026-03-01T12:00:00Z"`
	// Containers are the containers that have the device.
	Containers []KubeletContainer `json:"containers,omitempty"`
}

// KubeletContainer is a container of a pod that has a device, or a share of it.
type KubeletContainer struct {
	// Namespace is the pod's namespace in Kubernetes.
	Namespace string `json:"namespace" example:"default"`
	// Pod is the pod's name.
	Pod string `json:"pod" example:"notebook-0"`
	// Container is the container's name.
	Container string `json:"container" example:"main"`
	// Unit is the kubelet's name of the device, or of the share.
	Unit string `json:"unit,omitempty" example:"GPU-6e8a5f2c-0000-4000-8000-000000000000"`
}

// KubeletPatch is the change of a node's KubeletPool. The zero value changes nothing.
type KubeletPatch struct {
	// Add and Remove, where not nil, are the whole lists from now on.
	Add, Remove *[]string
}

// IsZero reports whether the patch is without a change.
func (p KubeletPatch) IsZero() bool { return p.Add == nil && p.Remove == nil }

// Apply returns a pool with the change, nil where no device is named.
func (p KubeletPatch) Apply(pool *KubeletPool) *KubeletPool {
	next := KubeletPool{}
	if pool != nil {
		next = *pool
	}
	if p.Add != nil {
		next.Add = slices.Clone(*p.Add)
	}
	if p.Remove != nil {
		next.Remove = slices.Clone(*p.Remove)
	}
	if len(next.Add)+len(next.Remove) == 0 {
		return nil
	}
	return &next
}

// spec is the patch as a document has it.
func (p KubeletPatch) spec() map[string]any {
	of := map[string]any{}
	for field, list := range map[string]*[]string{"add": p.Add, "remove": p.Remove} {
		if list != nil {
			of[field] = *list
		}
	}
	return of
}

// maxKubeletDevices is the most devices of each list, and maxDeviceUUID the most bytes of
// each, as the kubelet takes them.
const (
	maxKubeletDevices = 512
	maxDeviceUUID     = 59
)

// isDeviceUUID reports whether a text is GPU- or MIG- with letters, digits and "-".
func isDeviceUUID(uuid string) bool {
	rest, gpu := strings.CutPrefix(uuid, "GPU-")
	if !gpu {
		var mig bool
		if rest, mig = strings.CutPrefix(uuid, "MIG-"); !mig {
			return false
		}
	}
	odd := func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	return rest != "" && len(uuid) <= maxDeviceUUID && !strings.ContainsFunc(rest, odd)
}

// CheckKubeletPool validates the operators' part of a pool; nil is valid.
func CheckKubeletPool(path string, p *KubeletPool) *Status {
	if p == nil {
		return nil
	}
	var faults faults
	seen := map[string]string{}
	for _, list := range []struct {
		field string
		uuids []string
	}{{"add", p.Add}, {"remove", p.Remove}} {
		if n := len(list.uuids); n > maxKubeletDevices {
			faults.add(invalid(path+"."+list.field, "%d devices, the limit is %d", n, maxKubeletDevices))
			continue
		}
		for i, uuid := range list.uuids {
			at := path + "." + list.field + "[" + strconv.Itoa(i) + "]"
			switch before, twice := seen[uuid]; {
			case !isDeviceUUID(uuid):
				faults.add(invalid(at, "%q is not the UUID of a GPU or a MIG instance: `muster describe node` lists them", clip(uuid)))
			case twice:
				faults.add(invalid(at, "device %s is listed in %s already", uuid, before))
			}
			seen[uuid] = at
		}
	}
	return faults.status()
}
