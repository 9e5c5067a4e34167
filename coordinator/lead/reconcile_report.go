package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/grant"
)

// makeReport shows both sides.
func (r *reconciliation) makeReport() *api.Reconciliation {
	report := &api.Reconciliation{
		Kind: "Reconciliation", Node: string(r.id), Mode: r.options.Mode, Quarantine: r.why, Grants: []api.ReconciledGrant{}, Records: []api.ReconciledRecord{},
	}
	for _, g := range r.grants {
		entry := api.ReconciledGrant{
			Transaction: string(g.Tx), Unit: g.Name, Tenant: string(g.Tenant), State: shown.GrantState(g.State), Record: g.record.String(),
		}
		for _, m := range g.Members {
			entry.Members = append(entry.Members, m.Index)
			for _, d := range m.Assignment.GPUs {
				entry.Devices = append(entry.Devices, d.UUID)
			}
			for _, d := range m.Assignment.MIG {
				entry.Devices = append(entry.Devices, d.UUID)
			}
		}
		entry.Adopt, entry.Release = g.outcomes()
		report.Grants = append(report.Grants, entry)
	}
	for _, b := range r.back {
		report.Records = append(report.Records, api.ReconciledRecord{
			Transaction: string(b.tx), Unit: b.path, Record: b.state.Record().String(), Outcome: b.outcome,
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
