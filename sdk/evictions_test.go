package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

// evict stores an allocation that is evicted from a node, as the leader would.
func (c *coordinators) evict(name string, node resource.NodeID) error {
	unit := record.Unit{
		UID: resource.UnitUID("uid-" + name), Kind: record.AllocUnit, Namespace: "ml", Name: name, Tenant: "ml", Queue: "default", Phase: string(api.Terminating), Members: 1,
		TxID: resource.TxID("uid-" + name + ".1.1.00000000000000000000000000000001"), Reason: "maintenance", Started: "2024-01-15T10:00:00Z",
		Document: fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"resources":{"requests":{"cpu":"1"}}}}`, name),
	}
	rec := record.Tx{
		State: grant.RecordEvicting, Epoch: 1, Unit: unit.Path(), UnitUID: unit.UID, Tenant: "ml", Reason: unit.Reason, GraceSeconds: 30, Evicted: true,
		EndingMillis: time.Date(2024, 1, 15, 10, 35, 0, 0, time.UTC).UnixMilli(),
		Members:      []record.Placement{{Node: node, Assignment: resource.Assignment{CPUs: []resource.CPUGrant{{ID: 1, Milli: 1000}}}}},
	}
	_, err := c.cluster.Store().Txn(context.Background(), record.Txn{Then: []record.Op{
		record.Put(unit.Path().Key(), record.MustEncode(unit)), record.Put(record.TxKey(unit.TxID), record.MustEncode(rec)),
	}})
	return err
}

// Each notice of a node arrives once and in its order, though the coordinator that
// serves the watch is killed twice.
func TestAWatchOfEvictionsOutlivesItsCoordinators(t *testing.T) {
	const notices = 300
	c := startCoordinators(t, 3, resttest.Node{Name: "n1", CPUs: 4, Memory: 8 << 30})
	client := c.client(t)
	name := func(n int) string { return fmt.Sprintf("e%03d", n) }
	if err := errors.Join(c.evict(name(0), "n1"), c.evict("elsewhere", "n2")); err != nil {
		t.Fatal(err)
	}
	n := 0
	for notice, err := range client.Nodes().WatchEvictions(t.Context(), "n1", "") {
		if err != nil {
			t.Fatalf("after %d notices: %v", n, err)
		}
		if notice.Allocation != name(n) || notice.Deadline != "2024-01-15T10:35:30Z" || (notice.ResourceVersion == "") != (n == 0) {
			t.Fatalf("notice %d is %+v", n, notice)
		}
		if n++; n == notices {
			break
		}
		if n == 100 || n == 200 {
			c.kill[slices.Index(c.url, client.Endpoint())]()
		}
		if err := c.evict(name(n), "n1"); err != nil {
			t.Fatal(err)
		}
	}
	for notice, err := range client.Nodes().WatchEvictions(t.Context(), "n9", "") {
		var refused *api.Status
		if !errors.As(err, &refused) || refused.Code != 404 {
			t.Errorf("a node that does not exist: %+v, %v", notice, err)
		}
	}
}
