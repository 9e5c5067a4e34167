package lead

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/entries"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
)

// labels has a person label an allocation, and returns the entry beside the change.
func (x *scene) labels(by record.Actor, i int, apart bool) record.Audit {
	x.t.Helper()
	x.clear()
	text := fmt.Sprint(i)
	by.ID, by.RequestID = fmt.Sprintf("%013d-%s%d", x.clock.UnixMilli(), by.Person, i), "r-"+text
	change := record.Audit{Actor: by, AtMillis: x.clock.UnixMilli(), Verb: "patch", Kind: "allocations", Namespace: "default", Name: "a", Apart: apart}
	x.ask(AskedBy{&change, PatchAllocation{"default", "a", api.WorkPatch{Labels: api.MapPatch{Set: map[string]*string{"i": &text}}}}})
	x.answers()
	var written []record.Audit
	for _, e := range x.left {
		if e.Kind != post.WriteKeys {
			continue
		}
		for _, op := range e.Write.Ops {
			if strings.HasPrefix(op.Key, record.AuditPrefix) {
				a, err := record.Decode[record.Audit](op.Key, op.Value)
				if err != nil {
					x.t.Fatal(err)
				}
				written = append(written, a)
			}
		}
	}
	if len(written) != 1 {
		x.t.Fatalf("change %d is written with %d entries, want 1: %+v %s", i, len(written), written, x.refusedWith())
	}
	return written[0]
}

// A term writes a bounded number of keys for the audit in an hour, so that a person who
// changes an object without end does not fill the store. Each change beyond the bound counts
// in an earlier entry. An administrator has an entry for each change.
func TestAnHourHasABoundedNumberOfAuditKeys(t *testing.T) {
	x := newScene(t)
	x.accepted("a", 1, `"suspend":true,`)
	ada, root := record.Actor{Person: "ada", Tenant: "vision"}, record.Actor{Person: "root"}
	i := 0
	for ; i < entries.MostAlike; i++ {
		if e := x.labels(ada, i, false); e.RequestID != fmt.Sprint("r-", i) || e.Count != 0 {
			t.Fatalf("change %d is in the entry %+v, want one of its own", i, e)
		}
	}
	last := fmt.Sprint("r-", i-1)
	for n := range int64(3) {
		if e := x.labels(ada, i, false); e.RequestID != last || e.Count != n+2 {
			t.Fatalf("change %d is in the entry %+v, want it counted in that of %s", i, e, last)
		}
		i++
	}
	for range 3 * entries.MostAlike {
		if e := x.labels(root, i, true); e.RequestID != fmt.Sprint("r-", i) || e.Count != 0 {
			t.Fatalf("change %d, by an administrator, is in the entry %+v, want one of its own", i, e)
		}
		i++
	}
	kept, _, err := x.kv.Range(t.Context(), record.AuditPrefix, store.RangeOptions{})
	if err != nil || len(kept) != 4*entries.MostAlike {
		t.Errorf("the store has %d keys of entries, want %d: %v", len(kept), 4*entries.MostAlike, err)
	}
}
