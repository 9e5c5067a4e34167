package fit

import (
	"slices"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// Kind has the common properties of hosts that hold the same requests while they are
// empty and healthy. Counted resources are none of these properties: almost each host has
// another amount of storage. One goroutine owns a Kind.
type Kind struct {
	host       *Host
	empty      *Free
	assignment resource.Assignment
}

// NewKind returns the kind of a host.
func NewKind(h *Host) *Kind {
	plain := *h
	plain.counts = countTable{pods: -1}
	k := &Kind{host: &plain, empty: plain.NewFree()}
	k.empty.heal()
	return k
}

// MayHold is false where no host of the kind has room for req, even when all is free.
// Where the search for devices or nodes is not exact, MayHold is true. Counted resources
// do not matter.
func (k *Kind) MayHold(req resource.Request) bool {
	if req.Counts != "" {
		if req.Counts = ""; req.Validate() != nil {
			return true // the request is for nothing but counted resources
		}
	}
	return len(k.host.inventory.Devices) > maxExact || len(k.host.domains) > maxExactDomains || k.host.Assign(k.empty, req, &k.assignment)
}

// Has reports whether a host is of the kind. CPU numbers, distances, addresses and
// health decide on no more than the choice among several places.
func (k *Kind) Has(h *Host) bool {
	o := k.host
	return slices.Equal(o.fullCPU, h.fullCPU) && slices.Equal(o.fullCores, h.fullCores) && slices.Equal(o.fullMemory, h.fullMemory) &&
		slices.Equal(o.domainOf, h.domainOf) && slices.Equal(o.pages.sizes, h.pages.sizes) && slices.Equal(o.pages.full, h.pages.full) &&
		slices.EqualFunc(o.inventory.Devices, h.inventory.Devices, alikeDevices) &&
		o.gpuDomain == h.gpuDomain && slices.EqualFunc(o.inventory.Links, h.inventory.Links, slices.Equal)
}

// alikeDevices reports whether two devices satisfy the same requests.
func alikeDevices(a, b devices.Device) bool {
	return a.Model == b.Model && a.Memory == b.Memory && a.MIG.Enabled == b.MIG.Enabled &&
		slices.EqualFunc(a.MIG.Instances, b.MIG.Instances, func(a, b devices.MIGInstance) bool { return a.Profile == b.Profile && a.Memory == b.Memory })
}
