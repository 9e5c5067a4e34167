package hosts_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/lead/hosts"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestTheMirrorLeavesTombstonesOut: tombstones hold nothing.
func TestTheMirrorLeavesTombstonesOut(t *testing.T) {
	cpu := resource.Assignment{CPUs: []resource.CPUGrant{{ID: 3, Milli: 1000}}}
	held := grant.Grant{Tx: "a", State: grant.Held, Members: []grant.Member{{Assignment: cpu}}}
	over := grant.Grant{Tx: "b", State: grant.Tombstone, Members: held.Members}
	var alone, both hosts.Mirror
	alone.Reset([]grant.Grant{held}, 0)
	if both.Reset([]grant.Grant{held, over}, 0); both.Sum != alone.Sum || both.Sum == 0 {
		t.Errorf("with a tombstone the sum is %x, without %x", both.Sum, alone.Sum)
	}
}
