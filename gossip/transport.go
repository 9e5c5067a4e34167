package gossip

import "github.com/hashicorp/memberlist"

// Ring names one of a member's two rings.
type Ring string

// The rings.
const (
	SerfRing     Ring = "serf"
	CapacityRing Ring = "capacity"
)

// Transports opens the transports of a member's rings, in place of UDP and TCP
// on the bind addresses. The address that a transport advertises stands for the
// member from then on, so it must be a loopback address too, and no other
// member's. The ring shuts the transport down.
type Transports interface {
	Open(ring Ring, member string) (memberlist.Transport, error)
}

// use opens a ring's transport and enters it into the ring's settings; without
// Transports those stay as they are.
func use(t Transports, ring Ring, member string, c *memberlist.Config) (err error) {
	if t != nil {
		c.Transport, err = t.Open(ring, member)
	}
	return err
}
