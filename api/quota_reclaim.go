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

// QuotaReclaim is the list of units that end, or would end, so that the nodes of a
// quota tree are within their quotas again.
type QuotaReclaim struct {
	// Kind is QuotaReclaim.
	Kind string `json:"kind" oneof:"QuotaReclaim"`
	// Tree is the name of the tree.
	Tree string `json:"tree" example:"company"`
	// DryRun reports that nothing ends by this answer.
	DryRun bool `json:"dryRun,omitempty" example:"true"`
	// Units are the allocations and jobs that end, in the order of their choice.
	Units []QuotaReclaimed `json:"units"`
	// Nodes are the nodes that were over quota, the deepest first.
	Nodes []QuotaOverdraft `json:"nodes"`
	// Remaining are the nodes that stay over quota once these units have ended,
	// because units that must not be evicted hold it.
	Remaining []QuotaOverdraft `json:"remaining,omitempty"`
	// Summary is the answer in one sentence, with its numbers.
	Summary string `json:"summary" example:"quota tree company: node vision is over quota; 1 job would end"`
}

// QuotaReclaimed is an allocation or a job that ends. A job ends whole, also where
// one of its members would have been enough.
type QuotaReclaimed struct {
	// Kind is the kind of the object.
	Kind string `json:"kind" oneof:"Allocation,Job"`
	// Consumer is the object, as namespace/name.
	Consumer string `json:"consumer" example:"default/train"`
	// Node is the node for whose quota the object was chosen first.
	Node string `json:"node" example:"vision"`
	// Request are the amounts that the object is charged with on the tree.
	Request map[resource.Name]string `json:"request,omitempty" format:"quantity" example:"{nvidia.com/gpu: '2'}"`
	// Priority is the object's priority.
	Priority int32 `json:"priority" range:"0..1000000000" example:"0"`
}

// QuotaOverdraft is the amount by which a node is over its quota.
type QuotaOverdraft struct {
	// Node is the name of the node.
	Node string `json:"node" example:"vision"`
	// Over are the amounts beyond the quota.
	Over map[resource.Name]string `json:"over" format:"quantity" example:"{nvidia.com/gpu: '2'}"`
}

// ReclaimOptions is the optional body of a reclaim.
type ReclaimOptions struct {
	// GracePeriodSeconds is the time between the notice and the forced stop, for each
	// unit.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty" default:"30" range:"0..86400" unit:"seconds" example:"60"`
}

var reclaimOptionsDecoder = strict.For[ReclaimOptions]()

// DecodeReclaimOptions reads the body of a reclaim; an empty body asks for the
// defaults.
func DecodeReclaimOptions(doc []byte) (ReclaimOptions, *Status) {
	return decodeOptions(reclaimOptionsDecoder, doc, func(o *ReclaimOptions) *Status { return o.Validate() })
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

// counts words the number of each kind, without the kinds that are absent,
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
