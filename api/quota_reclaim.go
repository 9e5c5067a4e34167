package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/api/internal/strict"
	"github.com/musterd/muster/resource"
)

// KindQuotaReclaim is the kind of the answer to a reclaim.
const KindQuotaReclaim = "QuotaReclaim"

// QuotaReclaim is what ends, or would end, so that the nodes of a quota tree
// are within their quotas again.
type QuotaReclaim struct {
	Kind string `json:"kind"`
	Tree string `json:"tree"`
	// DryRun says that nothing ends by this answer.
	DryRun bool `json:"dryRun,omitempty"`
	// Units are who ends, in the order in which they were chosen.
	Units []QuotaReclaimed `json:"units"`
	// Nodes are those over quota before, the deepest first.
	Nodes []QuotaOverdraft `json:"nodes"`
	// Remaining are those over quota still once all that ends has ended: held
	// there by what must not be evicted.
	Remaining []QuotaOverdraft `json:"remaining,omitempty"`
	Summary   string           `json:"summary"`
}

// QuotaReclaimed is an allocation or a job that ends. A job ends whole, also
// where one of its members would have been enough.
type QuotaReclaimed struct {
	Kind     string `json:"kind"`     // Allocation | Job
	Consumer string `json:"consumer"` // namespace/name
	// Node is the one for whose sake it was chosen first.
	Node string `json:"node"`
	// Request is what of it is charged to the tree.
	Request  map[resource.Name]string `json:"request,omitempty"`
	Priority int32                    `json:"priority"`
}

// QuotaOverdraft is by how much a node is over its quota.
type QuotaOverdraft struct {
	Node string                   `json:"node"`
	Over map[resource.Name]string `json:"over"`
}

// ReclaimOptions is the body of a reclaim.
type ReclaimOptions struct {
	// GracePeriodSeconds is what everybody gets to stop in; nil is the
	// server's default.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
}

var reclaimOptionsDecoder = strict.For[ReclaimOptions]()

// DecodeReclaimOptions reads the body of a reclaim; an empty body asks for the
// defaults.
func DecodeReclaimOptions(doc []byte) (ReclaimOptions, *Status) {
	if len(doc) == 0 {
		return ReclaimOptions{}, nil
	}
	o, status := decode(reclaimOptionsDecoder, doc)
	if status == nil {
		status = o.Validate()
	}
	if status != nil {
		return ReclaimOptions{}, status
	}
	return *o, nil
}

// Validate names the field that is out of range.
func (o *ReclaimOptions) Validate() *Status { return checkGrace(o.GracePeriodSeconds) }

// checkGrace refuses a grace that is out of range; nil is the default.
func checkGrace(seconds *int64) *Status {
	if seconds != nil && (*seconds < 0 || *seconds > MaxGracePeriodSeconds) {
		return invalid("gracePeriodSeconds", "%d is outside 0..%d", *seconds, MaxGracePeriodSeconds)
	}
	return nil
}

// Summarize says it in one sentence.
func (r *QuotaReclaim) Summarize() string {
	if len(r.Nodes) == 0 {
		return fmt.Sprintf("no node of quota tree %s is over its quota: nothing has to end", r.Tree)
	}
	said := fmt.Sprintf("quota tree %s: %s over quota", r.Tree, nodes(r.Nodes, "is", "are"))
	jobs, allocations := 0, 0
	for i := range r.Units {
		if r.Units[i].Kind == KindJob {
			jobs++
		} else {
			allocations++
		}
	}
	ends := counts(jobs, "job", allocations, "allocation")
	switch {
	case ends != "" && r.DryRun:
		said += "; " + ends + " would end"
	case ends != "":
		said += "; " + ends + " told to end"
	case len(r.Remaining) == 0:
		said += "; what is ending already makes room enough"
	}
	if len(r.Remaining) > 0 {
		said += fmt.Sprintf("; %s so, held there by what must not be evicted", nodes(r.Remaining, "stays", "stay"))
	}
	return said
}

// nodes names nodes and gives them their verb, e.g. "nodes a, b are".
func nodes(list []QuotaOverdraft, is, are string) string {
	const most = 5
	if len(list) == 1 {
		return fmt.Sprintf("node %s %s", list[0].Node, is)
	}
	var names []string
	for _, n := range list[:min(most, len(list))] {
		names = append(names, n.Node)
	}
	more := ""
	if len(list) > most {
		more = fmt.Sprintf(" and %d more", len(list)-most)
	}
	return fmt.Sprintf("nodes %s%s %s", strings.Join(names, ", "), more, are)
}

// counts says how many of each there are, leaving out what there is none of,
// e.g. "2 jobs and 1 allocation".
func counts(n int, one string, m int, other string) string {
	parts := []string{plural(n, one), plural(m, other)}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, " and ")
}

func plural(n int, one string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
