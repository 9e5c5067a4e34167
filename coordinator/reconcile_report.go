package coordinator

import (
	"cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
)

// makeReport shows both sides.
func (r *reconciliation) makeReport() *api.Reconciliation {
	report := &api.Reconciliation{
		Kind: "Reconciliation", Node: string(r.id), Mode: r.options.Mode, Quarantine: r.why, Grants: []api.ReconciledGrant{}, Records: []api.ReconciledRecord{},
	}
	for _, g := range r.grants {
		shown := api.ReconciledGrant{
			Transaction: string(g.Tx), Unit: g.Name, Tenant: string(g.Tenant), State: g.State.String(), Record: cmp.Or(string(g.record), "absent"),
		}
		for _, m := range g.Members {
			shown.Members = append(shown.Members, m.Index)
			for _, d := range m.Assignment.GPUs {
				shown.Devices = append(shown.Devices, d.UUID)
			}
			for _, d := range m.Assignment.MIG {
				shown.Devices = append(shown.Devices, d.UUID)
			}
		}
		shown.Adopt, shown.Release = g.outcomes()
		report.Grants = append(report.Grants, shown)
	}
	for _, b := range r.back {
		report.Records = append(report.Records, api.ReconciledRecord{
			Transaction: string(b.tx), Unit: b.path, Record: string(stateOfRecord(b.state)), Outcome: "ended: " + storeRestored,
		})
	}
	return report
}

// outcomes say what becomes of a grant in either mode.
func (g *lost) outcomes() (adopt, release string) {
	switch {
	case g.State == agents.StateReserved, g.State == agents.StateWaiting:
		return "undecided: its agent asks", "undecided: its agent asks"
	case g.State == agents.StateStopping:
		return "stops", "stops"
	case g.record.Charged():
		return "kept", "kept"
	case g.record != "":
		return "stopped", "stopped"
	case g.partial:
		return "stopped: " + g.problem, "stopped"
	case g.problem != "":
		return "refused: " + g.problem, "stopped"
	}
	return "adopted", "stopped"
}

// stateOfRecord is that of a machine which is decided and has not ended.
func stateOfRecord(s txn.State) record.State {
	switch {
	case s <= txn.Noticing:
		return record.Committed
	case s <= txn.Ending:
		return record.Evicting
	}
	return record.Releasing
}
