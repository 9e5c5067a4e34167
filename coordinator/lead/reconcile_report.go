package lead

import (
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// makeReport shows both sides.
func (r *reconciliation) makeReport() *api.Reconciliation {
	report := &api.Reconciliation{
		Kind: "Reconciliation", Node: string(r.id), Mode: r.options.Mode, Quarantine: r.why, Grants: []api.ReconciledGrant{}, Records: []api.ReconciledRecord{},
	}
	for _, g := range r.grants {
		shown := api.ReconciledGrant{
			Transaction: string(g.Tx), Unit: g.Name, Tenant: string(g.Tenant), State: shownState(g.State), Record: g.record.String(),
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
			Transaction: string(b.tx), Unit: b.path, Record: stateOfRecord(b.state).String(), Outcome: b.outcome,
		})
	}
	return report
}

// outcomes say what becomes of a grant in either mode.
func (g *lost) outcomes() (adopt, release string) {
	switch {
	case g.State == grant.Reserved, g.State == grant.Waiting:
		return "undecided: its agent asks", "undecided: its agent asks"
	case g.State == grant.Stopping:
		return "stops", "stops"
	case g.record.Charged():
		return "kept", "kept"
	case g.record != grant.RecordAbsent:
		return "stopped", "stopped"
	case g.partial:
		return "stopped: " + g.problem, "stopped"
	case g.problem != "":
		return "refused: " + g.problem, "stopped"
	}
	return "adopted", "stopped"
}

// stateOfRecord is that of a machine which is decided and has not ended.
func stateOfRecord(s txn.State) grant.RecordState {
	switch {
	case s <= txn.Noticing:
		return grant.RecordCommitted
	case s <= txn.Ending:
		return grant.RecordEvicting
	}
	return grant.RecordReleasing
}

// shownState is the API's word for a grant's state.
func shownState(s grant.State) string {
	if s == grant.Tombstone {
		return "freed"
	}
	return strings.ToLower(s.String())
}
