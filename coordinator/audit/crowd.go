package audit

import (
	"net/netip"
	"time"

	"github.com/musterd/muster/api"
)

// Bounds of the refusals of a second.
const (
	// mostPlaces bounds the addresses of strangers with an entry each. A further entry counts
	// the strangers of all other addresses.
	mostPlaces = 1024
	// mostOfOwner bounds the entries of a tenant. A further entry counts the others.
	mostOfOwner = 32
)

// crowd joins the refusals alike of a second: those of strangers at an address, and those of
// a person about an object. The zero value is empty. A single goroutine uses a crowd at a
// time.
type crowd struct {
	second  time.Time
	entries map[alike]*api.AuditEntry
	order   []alike        // of entries
	owners  map[string]int // entries, by owner
}

// alike is the refusals of an entry.
type alike struct {
	owner, place, person, token, verb, resource, namespace, name string
	code                                                         int
}

// take returns the entry for a refusal: a copy of e, or of an earlier entry with a greater
// count. over are the entries of the second before, once the second is over.
func (c *crowd) take(now time.Time, e *api.AuditEntry) (stands *api.AuditEntry, over []*api.AuditEntry) {
	if at := now.Truncate(time.Second); !at.Equal(c.second) || c.entries == nil {
		over = c.end()
		*c = crowd{second: at, entries: map[alike]*api.AuditEntry{}, owners: map[string]int{}}
	}
	key, most := alike{owner: ownerOf(e), person: e.Person, token: e.Token, verb: e.Verb, resource: e.Resource, namespace: e.Namespace, name: e.Name, code: e.Code}, mostOfOwner
	if isStranger(e) {
		key, most = alike{place: placeOf(e.Address), code: e.Code}, mostPlaces
	}
	earlier := c.entries[key]
	if earlier == nil && c.owners[key.owner] >= most {
		key = alike{owner: key.owner, name: "others"}
		earlier = c.entries[key]
	}
	made := *e
	if earlier != nil {
		made = *earlier
		made.Count = max(made.Count, 1) + 1
	} else {
		c.owners[key.owner]++
		c.order = append(c.order, key)
	}
	c.entries[key] = &made
	return &made, over
}

// end returns the entries of the second, in the order of their first refusals, and forgets
// them.
func (c *crowd) end() []*api.AuditEntry {
	var over []*api.AuditEntry
	for _, key := range c.order {
		over = append(over, c.entries[key])
	}
	*c = crowd{}
	return over
}

// isStranger reports whether a request had no valid credential.
func isStranger(e *api.AuditEntry) bool { return e.Person == "" && e.Token == "" && e.Tenant == "" }

// placeOf is the host of an address; of IPv6 the network of 64 bits, since a host has all
// addresses there.
func placeOf(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	host := at.Addr().Unmap()
	if host.Is6() {
		network, _ := host.WithZone("").Prefix(64) // of 128 bits
		return network.String()
	}
	return host.String()
}

// ownerOf is the tenant of an entry, or a person without a tenant; "" is a stranger.
func ownerOf(e *api.AuditEntry) string {
	switch {
	case e.Tenant != "":
		return "tenant " + e.Tenant
	case isStranger(e):
		return ""
	}
	return "person " + e.Person + " " + e.Token
}
