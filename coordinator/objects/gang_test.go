package objects

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Whatever comes, changes and goes, each running member of a group knows the number of
// running members that a count over all keys has, and has the condition below the minimum
// alone.
func TestMembersKnowTheirGroup(t *testing.T) {
	phases := []api.Phase{api.Pending, api.Running, api.Running, api.Terminating, api.Preempted}
	rapid.Check(t, func(t *rapid.T) {
		c, kvs, units := New(), map[string]record.KV{}, map[string]record.Unit{}
		for rev := range resource.Revision(rapid.IntRange(1, 40).Draw(t, "steps")) {
			name := fmt.Sprint("a", rapid.IntRange(0, 7).Draw(t, "name"))
			u := record.Unit{
				UID: resource.UnitUID(name), Kind: record.AllocUnit, Namespace: "ml", Name: name, Tenant: "ml", Queue: "default", Members: 1,
				Phase:    string(rapid.SampledFrom(phases).Draw(t, "phase")),
				Document: []byte(fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"resources":{"requests":{"cpu":"1"}}}}`, name)),
			}
			if group := rapid.Uint64Range(0, 2).Draw(t, "group"); group > 0 {
				u.Gang = &record.GangPlace{First: record.Sequence{Epoch: 1, Counter: group}, MinMembers: 3}
			}
			key := u.Path().Key()
			if rapid.IntRange(0, 3).Draw(t, "goes") == 0 {
				delete(kvs, key)
				delete(units, name)
			} else {
				kvs[key] = record.KV{Key: key, Value: record.MustEncode(u), ModRev: rev + 1}
				units[name] = u
			}
			c.Touch(key)
			if err := c.Refresh(kvs, rev+1, time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
			v := c.View(rev+1, time.Unix(0, 0))
			for name, u := range units {
				together := 0
				for _, other := range units {
					if u.Gang != nil && other.Gang != nil && other.Gang.First == u.Gang.First && other.Phase == string(api.Running) {
						together++
					}
				}
				m, found := v.Member("ml/" + name)
				if !found {
					t.Fatalf("%s is not shown", name)
				}
				runs := u.Gang != nil && u.Phase == string(api.Running)
				if runs && m.Together != together {
					t.Fatalf("%s has %d members beside it, want %d", name, m.Together, together)
				}
				below := false
				for _, condition := range m.Show().Status.Conditions {
					below = below || condition.Type == "GangBelowMinimum"
				}
				if below != (runs && together < 3) {
					t.Fatalf("%s in phase %s with %d of 3: the condition is %t", name, u.Phase, together, below)
				}
			}
		}
	})
}
