package rig

import (
	"testing"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/coordinator/store/storetest"
)

// TestAGateIsAStore: while nothing is disturbed a gate keeps a store's contract.
func TestAGateIsAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return &Gate{Store: mem.Open(mem.Options{}), cluster: New(t, Options{}), proc: &process{name: "c1"}}
	})
}
