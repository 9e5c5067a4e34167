package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
)

func TestAReconciliationIsShown(t *testing.T) {
	var out strings.Builder
	(&app{Program: Program{Stdout: &out}}).reconciliation(&api.Reconciliation{
		Node: "n1", Quarantine: "the store is at revision 12 and this agent has heard of revision 40",
		Grants: []api.ReconciledGrant{
			{Transaction: "t1", Unit: "default/job/j/0", Tenant: "a", Members: []int{0, 2}, Devices: []string{"GPU-1", "GPU-2"}, State: "held", Record: "absent", Adopt: "adopted", Release: "stopped"},
			{Transaction: "t2", Members: []int{0}, State: "held", Record: "COMMITTED", Adopt: "kept", Release: "kept"},
		},
		Records: []api.ReconciledRecord{{Transaction: "t3", Unit: "default/alloc/b/0", Record: "COMMITTED", Outcome: "ended: StoreRestored"}},
	})
	want := `node "n1" is in quarantine: the store is at revision 12 and this agent has heard of revision 40
TRANSACTION   UNIT              TENANT   MEMBERS   DEVICES       HERE   STORE       --adopt   --release
t1            default/job/j/0   a        0,2       GPU-1,GPU-2   held   absent      adopted   stopped
t2            <none>            <none>   0         <none>        held   COMMITTED   kept      kept

not held there any more:
TRANSACTION   UNIT                STORE       OUTCOME
t3            default/alloc/b/0   COMMITTED   ended: StoreRestored
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
