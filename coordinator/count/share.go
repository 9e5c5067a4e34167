package count

import "github.com/musterd/muster/api"

// Share bounds the documents of all tenants together, in bytes; 0 is no bound. One tenant
// has at most half of it, and the last quarter is for tenants with at most SmallTenant,
// so that the next tenant finds room, however many others store all that they may.
type Share int64

// DefaultShare is the share where nothing is configured. A coordinator has up to five
// times as much memory of documents.
const DefaultShare Share = 512 << 20

// SmallTenant is the size of the documents up to which a tenant has all of a Share, in
// bytes.
const SmallTenant = 1 << 20

// IsFar reports whether more bytes are within the share of each tenant, whoever has
// stored the documents that there are.
func (s Share) IsFar(all, more int64) bool { return s == 0 || more <= 0 || all+more <= int64(s)/2 }

// Refuse returns the 429 of a request that adds more bytes of documents than the share
// leaves for a tenant, which has own of the bytes of all; nil for all other requests.
func (s Share) Refuse(tenant string, own, all, more int64) *api.Status {
	const next = "delete objects that have ended, or ask an operator to raise limits.documents of the coordinators"
	switch {
	case s == 0 || more <= 0 || own+more <= SmallTenant && all+more <= int64(s):
		return nil
	case own+more > SmallTenant && own+more > int64(s)/2:
		return api.Errorf(429, "tenant %s has documents of %d bytes in all of its namespaces and may have %d, half of the room of all tenants: there is no room for %d more; %s",
			tenant, own, int64(s)/2, more, next).Because(api.TooManyObjects)
	case own+more > SmallTenant && all+more > int64(s)/4*3, all+more > int64(s):
		return api.Errorf(429, "all tenants have documents of %d bytes and may have %d, the last quarter of which is for tenants with at most %d: there is no room for %d more of tenant %s, which has %d; %s",
			all, int64(s), SmallTenant, more, tenant, own, next).Because(api.TooManyObjects)
	}
	return nil
}
