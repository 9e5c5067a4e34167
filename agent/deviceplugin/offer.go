package deviceplugin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
)

// unit is one place that the kubelet may give to a container: a GPU, a MIG instance,
// or a share of one of them.
type unit struct {
	// id is the kubelet's identifier: the UUID, with "::" and a number for a share.
	id     string
	uuid   string
	health bool
	// numa is the device's NUMA node, devices.UnknownNode where it is not known.
	numa int
}

// deviceOf is the UUID of the device of a unit.
func deviceOf(id string) string {
	uuid, _, _ := strings.Cut(id, "::")
	return uuid
}

// offers are the units by resource name: the devices of the pool that the ledger has
// given to the kubelet. Units ascend by id.
func offers(c *Config, pool []string, v *ledger.View) map[string][]unit {
	ours := map[string]bool{}
	for _, g := range v.Grants {
		if uuid, _, ok := ledger.PooledUUID(g.Tx); ok && g.Origin == ledger.OriginKubelet {
			ours[uuid] = slices.Contains(pool, uuid)
		}
	}
	all := map[string][]unit{}
	add := func(resource, uuid string, d devices.Device, healthy bool) {
		if !ours[uuid] {
			return
		}
		n, shared := c.Shares[uuid]
		if !shared {
			all[resource] = append(all[resource], unit{uuid, uuid, healthy, d.NUMANode})
			return
		}
		for i := range n {
			all[resource+".shared"] = append(all[resource+".shared"], unit{fmt.Sprintf("%s::%d", uuid, i), uuid, healthy, d.NUMANode})
		}
	}
	domain, _, _ := strings.Cut(c.Resource, "/")
	for i, d := range v.Host.Inventory().Devices {
		healthy := v.GPUs[i].Health == devices.OK
		add(c.Resource, d.UUID, d, healthy)
		for _, m := range d.MIG.Instances {
			// As NVIDIA's plugin names profiles: "+" is no character of a resource name.
			add(domain+"/mig-"+strings.ReplaceAll(m.Profile, "+", "."), m.UUID, d, healthy)
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b unit) int { return cmp.Compare(a.id, b.id) })
	}
	return all
}
