package agent

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/agent/deviceplugin"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/resource"
)

// kubeletSince is the wall clock's time of each grant of the kubelet, as it was first
// reported: the ledger's times are on another clock, and a time that is computed anew
// would differ by a second now and then. It belongs to the goroutine of the heartbeats.
type kubeletSince map[resource.TxID]since

type since struct{ ledger, wall time.Time }

// of is the wall clock's time of a grant, at a moment on both clocks.
func (s kubeletSince) of(g ledger.Grant, ledgerNow, wallNow time.Time) time.Time {
	if known, ok := s[g.Tx]; ok && known.ledger.Equal(g.Since) {
		return known.wall
	}
	wall := wallNow.Add(-max(0, ledgerNow.Sub(g.Since))).Truncate(time.Second)
	s[g.Tx] = since{g.Since, wall}
	return wall
}

// forget drops the grants that a view does not have.
func (s kubeletSince) forget(v *ledger.View) {
	has := map[resource.TxID]bool{}
	for _, g := range v.Grants {
		has[g.Tx] = true
	}
	maps.DeleteFunc(s, func(tx resource.TxID, _ since) bool { return !has[tx] })
}

// kubeletReport is the pool for the coordinators, nil where the kubelet gets no
// devices.
func (a *Agent) kubeletReport(v *ledger.View, wallNow time.Time) *rpc.KubeletReport {
	pool, on := a.kubelet.Pool()
	if !on {
		return nil
	}
	devices := map[string]*rpc.KubeletDevice{}
	at := func(uuid string) *rpc.KubeletDevice {
		if devices[uuid] == nil {
			devices[uuid] = &rpc.KubeletDevice{UUID: uuid, Configured: a.config.Kubelet != nil && slices.Contains(a.config.Kubelet.Pool, uuid)}
		}
		return devices[uuid]
	}
	for _, uuid := range pool {
		d := at(uuid)
		d.State, d.Holder = rpc.KubeletJoining, holderOf(v, uuid)
	}
	now := a.deps.Now()
	for _, g := range v.Grants {
		uuid, lent, ok := ledger.PooledUUID(g.Tx)
		if !ok {
			continue
		}
		d := at(uuid)
		d.Holder, d.Since = "", a.kubeletSince.of(g, now, wallNow)
		switch {
		case !slices.Contains(pool, uuid):
			d.State = rpc.KubeletLeaving
		case lent:
			d.State = rpc.KubeletLent
		default:
			d.State = rpc.KubeletFree
		}
	}
	a.kubeletSince.forget(v)
	r := &rpc.KubeletReport{}
	for _, u := range a.kubelet.Status().Users {
		if d := devices[u.Device]; d != nil && d.State != rpc.KubeletFree && d.State != rpc.KubeletJoining {
			d.Containers = append(d.Containers, container(u))
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(devices)) {
		r.Devices = append(r.Devices, *devices[uuid])
	}
	return r
}

func container(u deviceplugin.User) rpc.KubeletContainer {
	return rpc.KubeletContainer{Namespace: u.Namespace, Pod: u.Pod, Container: u.Container, Unit: u.Unit}
}

// holderOf names the work that has a device: "NAMESPACE/NAME" of an allocation, "job
// NAMESPACE/NAME" of a job, the transaction where the name is not known, "" where nothing
// has the device.
func holderOf(v *ledger.View, uuid string) string {
	for _, g := range v.Grants {
		if !g.State.Holds() || !g.HasDevice(uuid) {
			continue
		}
		if _, orphan := ledger.OrphanUUID(g.Tx); orphan {
			return "processes without a grant"
		}
		return workOf(g)
	}
	return ""
}

// workOf names the object that a grant is of: its name in the store is
// NAMESPACE/alloc/NAME/0 or NAMESPACE/job/NAME/MEMBER.
func workOf(g ledger.Grant) string {
	parts := strings.Split(g.Name, "/")
	switch {
	case len(parts) == 4 && parts[1] == "alloc":
		return parts[0] + "/" + parts[2]
	case len(parts) == 4 && parts[1] == "job":
		return "job " + parts[0] + "/" + parts[2]
	}
	return string(g.Tx)
}
