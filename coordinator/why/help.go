package why

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/resource"
)

// HelpOf words hints. Each was tried on a copy of the cluster. namespace returns
// that of a unit's path.
func HelpOf(hints []whatif.Hint, v Viewer) []api.Help {
	list := make([]api.Help, 0, len(hints))
	for i := range hints {
		h := &hints[i]
		list = append(list, api.Help{Code: string(h.Code), Message: change(h, v) + ofSet(h) + then(h, v)})
	}
	return list
}

// ofSet names the set of members that changes.
func ofSet(h *whatif.Hint) string {
	if h.Set == "" {
		return ""
	}
	return " (of " + h.Set + ")"
}

// then words the effect of a change.
func then(h *whatif.Hint, v Viewer) string {
	if h.Code == whatif.WaitFor {
		return ""
	}
	if h.Then == sched.Preempt && len(h.Victims) > 0 {
		return ": it would take the place of " + v.Work(worksOf(h.Victims))
	}
	return ": it would start now"
}

func worksOf(victims []whatif.Victim) []Work {
	list := make([]Work, len(victims))
	for i, w := range victims {
		list[i] = Work{Unit: w.Unit, Namespace: namespaceOf(w.Unit), Priority: w.Priority, GPUs: w.GPUs}
	}
	return list
}

// change words the change itself.
func change(h *whatif.Hint, v Viewer) string {
	switch h.Code {
	case whatif.LooserNUMA:
		return fmt.Sprintf("with the NUMA policy %s", h.NUMA)
	case whatif.LooserLink:
		return fmt.Sprintf("with GPUs linked as %s allows", h.Link)
	case whatif.AnyModel:
		return "with GPUs of any model"
	case whatif.OtherModel:
		return "with GPUs of model " + h.Model
	case whatif.DropLabel:
		return fmt.Sprintf("without %s=%s in the node selector", h.Label.Key, h.Label.Value)
	case whatif.DropAffinity:
		return "without the required node affinity"
	case whatif.Tolerate:
		return fmt.Sprintf("with a toleration of the taint %s", h.Taint)
	case whatif.MayPreempt:
		return "with preemptionPolicy: PreemptLowerPriority (OwnQuota takes back quota of its own and evicts nobody else)"
	case whatif.HigherPriority:
		return fmt.Sprintf("with priority %d in place of %d and preemptionPolicy: PreemptLowerPriority", h.To, h.From)
	case whatif.LessCPU, whatif.LessMemory, whatif.FewerGPUs:
		return fmt.Sprintf("with %s for each member in place of %s", amount(h.Resource, h.To), resource.FormatAmount(h.Resource, h.From))
	case whatif.FewerMembers:
		return fmt.Sprintf("with %s in place of %d", count(int(h.To), "member"), h.From)
	case whatif.Uncordon:
		return fmt.Sprintf("with %s uncordoned (%s)", count(len(h.Nodes), "node"), names(h.Nodes))
	case whatif.NodesBack:
		return fmt.Sprintf("with %s back that %s not ready (%s)", count(len(h.Nodes), "node"), verb(len(h.Nodes), "is", "are"), names(h.Nodes))
	case whatif.RaiseLimit:
		whose := "the limit"
		if h.User != "" {
			whose = "the limit of each user"
		}
		return fmt.Sprintf("with %s in place of %s as %s of resource quota %s", amount(h.Resource, h.To), resource.FormatAmount(h.Resource, h.From), whose, h.Limit)
	case whatif.RaiseQuota:
		return fmt.Sprintf("with %s in place of %s as %s", amount(h.Resource, h.To), resource.FormatAmount(h.Resource, h.From), limitOf(&h.Quota))
	case whatif.WaitFor:
		return "once " + v.Work(worksOf(h.Ends)) + " " + verb(len(h.Ends), "has", "have") + " ended (no end is enforced, so no time is known)"
	}
	return string(h.Code)
}

// namespaceOf is the namespace of a unit's path.
func namespaceOf(path string) string {
	if i := slices.Index([]byte(path), '/'); i >= 0 {
		return path[:i]
	}
	return path
}
