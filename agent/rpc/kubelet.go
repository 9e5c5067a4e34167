package rpc

import (
	"time"

	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/wire/limits"
)

// KubeletReport is the pool of devices that the kubelet hands out, for people.
type KubeletReport struct {
	Devices []KubeletDevice // ascending by UUID
}

// KubeletDevice is a device that the kubelet hands out, or is to hand out.
type KubeletDevice struct {
	UUID       string
	State      string // one of the four below
	Configured bool   // the configuration has the device in its pool
	Holder     string // of a device that is Joining; at most limits.MaxUnitName bytes are sent
	Since      time.Time
	Containers []KubeletContainer
}

// The states of a KubeletDevice, as coordinator/record explains them.
const (
	KubeletFree    = "Free"
	KubeletLent    = "Lent"
	KubeletJoining = "Joining"
	KubeletLeaving = "Leaving"
)

// KubeletContainer is a container that has a unit of a device.
type KubeletContainer struct{ Namespace, Pod, Container, Unit string }

// CountContainers is the number of containers that have units of devices; 0 for nil.
func (r *KubeletReport) CountContainers() int {
	if r == nil {
		return 0
	}
	distinct := map[KubeletContainer]bool{}
	for _, d := range r.Devices {
		for _, c := range d.Containers {
			c.Unit = ""
			distinct[c] = true
		}
	}
	return len(distinct)
}

// message is the report on the wire, with at most limits.MaxKubeletContainers
// containers.
func (r *KubeletReport) message() *schedulerv1.KubeletReport {
	if r == nil {
		return nil
	}
	m := &schedulerv1.KubeletReport{}
	named := 0
	for _, d := range r.Devices[:min(len(r.Devices), 2*limits.MaxKubeletPool)] {
		device := &schedulerv1.KubeletDevice{Uuid: d.UUID, State: d.State, Configured: d.Configured, Holder: limits.Plain(d.Holder, limits.MaxUnitName)}
		if !d.Since.IsZero() {
			device.Since = max(0, d.Since.Unix())
		}
		for _, c := range d.Containers {
			if named++; named > limits.MaxKubeletContainers {
				m.MoreContainers++
				continue
			}
			device.Containers = append(device.Containers, &schedulerv1.KubeletContainer{
				Namespace: limits.Plain(c.Namespace, limits.MaxKubeletName), Pod: limits.Plain(c.Pod, limits.MaxKubeletName),
				Container: limits.Plain(c.Container, limits.MaxKubeletName), Unit: c.Unit,
			})
		}
		m.Devices = append(m.Devices, device)
	}
	return m
}
