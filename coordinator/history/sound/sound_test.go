package sound_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/sound"
	"github.com/musterd/muster/coordinator/history/tally"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m)) }

var start = time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)

func at(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }

// grantOf holds a device, or a share, with two CPUs.
func grantOf(tx, device string, milli int64, from, to int) history.Grant {
	amounts := resource.Vector{resource.CPU: 2000}
	m := history.Member{Devices: []string{device}, GPUModel: "H100", Requested: amounts, Allocated: amounts}
	if strings.HasPrefix(device, "MIG") {
		amounts["nvidia.com/mig-1g.10gb"] = milli
	} else {
		amounts[resource.GPU] = milli
	}
	g := history.Grant{Tx: resource.TxID(tx), State: "COMMITTED", Committed: at(from), Members: []history.Member{m}, Revision: 2}
	if to != 0 {
		g.State, g.Ended = "RELEASED", at(to)
	}
	return g
}

// until ends the member before the grant.
func until(g history.Grant, minute int) history.Grant {
	g.Members[0].Ended = at(minute)
	return g
}

type world struct {
	grants []history.Grant
	more   []history.Slice // beside those of the grants
	hand   string          // changes rows without a mark of their hours
	want   []string        // names of checks, ascending
}

var worlds = map[string]world{
	"one after the other":           {grants: []history.Grant{grantOf("a", "GPU-1", 1000, 0, 10), grantOf("b", "GPU-1", 1000, 10, 20)}},
	"two at once":                   {grants: []history.Grant{grantOf("a", "GPU-1", 1000, 0, 10), grantOf("b", "GPU-1", 1000, 9, 20)}, want: []string{"device"}},
	"a live grant beside another":   {grants: []history.Grant{grantOf("a", "GPU-1", 1000, 0, 0), grantOf("b", "GPU-1", 1000, 9, 20)}, want: []string{"device"}},
	"a member that ended before":    {grants: []history.Grant{until(grantOf("a", "GPU-1", 1000, 0, 30), 9), grantOf("b", "GPU-1", 1000, 9, 20)}},
	"other devices":                 {grants: []history.Grant{grantOf("a", "GPU-1", 1000, 0, 10), grantOf("b", "GPU-2", 1000, 5, 20)}},
	"shares of a device":            {grants: []history.Grant{grantOf("a", "GPU-1", 500, 0, 10), grantOf("b", "GPU-1", 500, 5, 20)}},
	"shares that are too many":      {grants: []history.Grant{grantOf("a", "GPU-1", 500, 0, 10), grantOf("b", "GPU-1", 501, 5, 20)}, want: []string{"device"}},
	"an instance twice":             {grants: []history.Grant{grantOf("a", "MIG-1", 1, 0, 10), grantOf("b", "MIG-1", 1, 5, 20)}, want: []string{"device"}},
	"an instance, and again":        {grants: []history.Grant{grantOf("a", "MIG-1", 1, 0, 5), grantOf("b", "MIG-1", 1, 5, 20)}},
	"as many CPUs as there are":     {grants: []history.Grant{grantOf("a", "GPU-1", 1000, 0, 10), grantOf("b", "GPU-2", 1000, 5, 20), grantOf("c", "GPU-3", 1000, 10, 30)}},
	"more CPUs than there are":      {grants: []history.Grant{grantOf("a", "GPU-1", 1000, 0, 10), grantOf("b", "GPU-2", 1000, 5, 20), grantOf("c", "GPU-3", 1000, 9, 30)}, want: []string{"capacity"}},
	"from before the node's change": {grants: []history.Grant{grantOf("a", "GPU-1", 1000, -5, 10), grantOf("b", "GPU-2", 1000, 5, 20), grantOf("c", "GPU-3", 1000, 9, 30)}},
	"a slice beyond the end":        {grants: []history.Grant{grantOf("a", "GPU-1", 1000, 0, 10)}, more: []history.Slice{{Tx: "a", Slot: resource.CPU, From: at(10), To: at(11)}}, want: []string{"slice"}},
	"a slice twice":                 {grants: []history.Grant{grantOf("a", "GPU-1", 1000, 0, 10)}, more: []history.Slice{{Tx: "a", Slot: resource.CPU, From: at(5), To: at(10)}}, want: []string{"slice"}},
	"a slice that a hand removed":   {grants: []history.Grant{grantOf("a", "GPU-1", 1000, 0, 200)}, hand: "DELETE FROM usage_slices WHERE slot_name = 'cpu' AND tenant_id = '%s' AND from_at IN (SELECT min(from_at) FROM usage_slices WHERE tenant_id = '%[1]s')", want: []string{"slice"}},
	"an amount of a hand":           {grants: []history.Grant{grantOf("a", "GPU-1", 1000, 0, 200)}, hand: "UPDATE usage_slices SET allocated = allocated + 1 WHERE slot_name = 'cpu' AND tenant_id = '%s'", want: []string{"hour"}},
	"a slice of a hand":             {grants: []history.Grant{grantOf("a", "GPU-1", 1000, 0, 10)}, hand: "UPDATE usage_slices SET to_at = from_at WHERE tenant_id = '%s' AND slot_name = 'memory'", more: []history.Slice{{Tx: "z", Slot: resource.Memory, From: at(1), To: at(2)}}, want: []string{"empty"}},
	"a grant that ended long ago":   {grants: []history.Grant{grantOf("a", "GPU-1", 1000, -600, -500), grantOf("b", "GPU-1", 1000, -590, -510)}},
}

// TestContradictions: each check finds the rows that contradict, and those alone; both
// databases agree.
func TestContradictions(t *testing.T) {
	for name, dsn := range map[string]string{"PostgreSQL": postgres.Database(t), "SQLite": "sqlite:" + filepath.Join(t.TempDir(), "history.db")} {
		t.Run(name, func(t *testing.T) {
			w, err := warehouse.Open(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			b := history.Batch{Upto: 5, At: at(-1)}
			names := slices.Sorted(maps.Keys(worlds))
			for i, name := range names {
				worlds[name].add(&b, fmt.Sprintf("w%02d", i))
			}
			if err := w.Write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if _, err := tally.Settle(t.Context(), w, at(600)); err != nil {
				t.Fatal(err)
			}
			for i, name := range names {
				if hand := worlds[name].hand; hand != "" {
					if _, err := w.SQL().Exec(fmt.Sprintf(hand, fmt.Sprintf("w%02d", i))); err != nil {
						t.Fatal(name, err)
					}
				}
			}
			faults, err := sound.Check(t.Context(), w, at(-60))
			if err != nil {
				t.Fatal(err)
			}
			for i, name := range names {
				var got []string
				for _, f := range faults {
					if strings.HasPrefix(f.Key, fmt.Sprintf("w%02d", i)) {
						got = append(got, f.Check)
					}
				}
				slices.Sort(got)
				if d := cmp.Diff(worlds[name].want, slices.Compact(got)); d != "" {
					t.Errorf("%s: (-want +got)\n%s%v", name, d, faults)
				}
			}
		})
	}
}

// add adds the rows of a world to a batch, with a node, a tenant and grants.
func (x world) add(b *history.Batch, id string) {
	b.Nodes = append(b.Nodes, history.Node{ID: resource.NodeID(id), Hostname: id, Capacity: resource.Vector{resource.CPU: 4000, resource.GPU: 8000}, Revision: 1})
	for _, g := range x.grants {
		g.Tx, g.Unit, g.Namespace, g.Tenant = resource.TxID(id)+g.Tx, resource.UnitUID(id), "ns", resource.TenantID(id)
		g.Members = slices.Clone(g.Members)
		g.Members[0].Node = resource.NodeID(id)
		b.Grants = append(b.Grants, g)
		b.Slices = append(b.Slices, usage.Slices(g, at(60))...)
	}
	for _, s := range x.more {
		s.Tx, s.Namespace, s.Tenant = resource.TxID(id)+s.Tx, "ns", resource.TenantID(id)
		b.Slices = append(b.Slices, s)
	}
}
