package lead

import (
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file sends agents the operators' part of the pool of devices that a kubelet hands
// out. The specification of the node has the part that operators wish; the occupancy that
// the agent reports has the part that the agent follows.

// poolOf is the operators' part of the pool in a specification.
func poolOf(spec record.NodeSpec) grant.KubeletPool {
	if spec.Kubelet == nil {
		return grant.KubeletPool{}
	}
	return grant.KubeletPool(*spec.Kubelet)
}

// isPooled reports whether a GPU or MIG instance is in the pool of the host's kubelet.
func (n *node) isPooled(uuid string) bool {
	pool := n.observed.pool
	return pool != nil && (slices.ContainsFunc(pool.GPUs, func(g resource.GPUGrant) bool { return g.UUID == uuid }) ||
		slices.ContainsFunc(pool.MIG, func(g resource.MIGGrant) bool { return g.UUID == uuid }))
}

// pooledPart is the part of a device that is in the pool of the host's kubelet.
func (n *node) pooledPart(device int) resource.Milli {
	d := &n.host.Inventory.Devices[device]
	if !d.MIG.Enabled || len(d.MIG.Instances) == 0 {
		if n.isPooled(d.UUID) {
			return resource.WholeDevice
		}
		return 0
	}
	pooled := 0
	for i := range d.MIG.Instances {
		if n.isPooled(d.MIG.Instances[i].UUID) {
			pooled++
		}
	}
	return resource.WholeDevice * resource.Milli(pooled) / resource.Milli(len(d.MIG.Instances))
}

// sendKubeletPool sends the operators' part to an agent that follows another one.
func (l *Leader) sendKubeletPool(n *node) {
	if wanted := poolOf(n.spec); n.connected && n.specRev != 0 && !wanted.Equal(n.kubeletPool) {
		l.post.Command(n.view.ID, wanted.Clone())
	}
}

// setKubeletPool changes the operators' part of the pool in a specification.
func setKubeletPool(spec *record.NodeSpec, p api.KubeletPatch) *api.Status {
	var before *api.KubeletPool
	if spec.Kubelet != nil {
		before = new(api.KubeletPool(*spec.Kubelet))
	}
	after := p.Apply(before)
	if status := api.CheckKubeletPool("spec.kubelet", after); status != nil {
		return status
	}
	if spec.Kubelet = nil; after != nil {
		spec.Kubelet = new(record.KubeletPool(*after))
	}
	return nil
}

// mostDevicesNamed bounds the devices that a refusal lists.
const mostDevicesNamed = 16

// knowsDevices refuses a change that adds a device which the host of a connected agent
// does not have. A device that the pool has already may be repeated: the card may be
// lost for a while.
func (l *Leader) knowsDevices(id resource.NodeID, spec record.NodeSpec, p api.KubeletPatch) *api.Status {
	n := l.nodes[id]
	if n == nil || n.host.Inventory == nil || p.Add == nil {
		return nil
	}
	var has []string
	for i := range n.host.Inventory.Devices {
		d := &n.host.Inventory.Devices[i]
		if !d.MIG.Enabled {
			has = append(has, d.UUID)
		}
		for _, g := range d.MIG.Instances {
			has = append(has, g.UUID)
		}
	}
	for i, uuid := range *p.Add {
		if slices.Contains(has, uuid) || slices.Contains(poolOf(spec).Add, uuid) {
			continue
		}
		list := strings.Join(has[:min(len(has), mostDevicesNamed)], ", ")
		if len(has) == 0 {
			list = "no GPU"
		}
		return api.Errorf(422, "spec.kubelet.add[%d]: node %s has no device %s; it has %s", i, id, uuid, list)
	}
	return nil
}
