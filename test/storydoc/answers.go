package storydoc

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/resource"
)

// Answer shows the answer to a client; name is the short name of a transaction.
func Answer(e post.Effect, name func(resource.TxID) string) string {
	if e.Status != nil {
		return fmt.Sprintf("refuse client %d: %d %s", e.Token, e.Status.Code, e.Status.Message)
	}
	text := fmt.Sprintf("answer client %d: ", e.Token)
	switch r := e.Result.(type) {
	case lead.Created:
		warnings := ""
		for _, w := range r.Warnings {
			warnings += "\n      warning: " + w
		}
		if r.Job != nil {
			return text + fmt.Sprintf("job %s is %s", r.Job.Metadata.Name, r.Job.Status.Phase) + warnings
		}
		return text + fmt.Sprintf("allocation %s is %s", r.Allocation.Metadata.Name, r.Allocation.Status.Phase) + warnings
	case *api.Allocation:
		return text + fmt.Sprintf("allocation %s is %s", r.Metadata.Name, r.Status.Phase)
	case *api.Job:
		return text + fmt.Sprintf("job %s is %s", r.Metadata.Name, r.Status.Phase)
	case lead.Eviction:
		return text + fmt.Sprintf("%s is under notice, in %s", r.Unit, name(r.Tx))
	case lead.Warned[*api.QuotaTree]:
		text += "tree " + r.Object.Metadata.Name
		for _, w := range r.Warnings {
			text += "; warning: " + w
		}
		return text
	case *api.QuotaTree:
		return text + TreeText(r)
	case *api.BulkRelease:
		text += fmt.Sprintf("%d released, %d failed, freed %v", r.Released, r.Failed, r.TotalResourcesFreed)
		for _, f := range r.Failures {
			text += "; " + f.Message
		}
		return text
	case *api.QuotaMode:
		return text + fmt.Sprintf("mode %s at %s since %s by %q: %q", r.Mode, r.Metadata.ResourceVersion, r.Since, r.By, r.Reason)
	case *lead.Explaining:
		return "  " + strings.ReplaceAll(strings.TrimRight(why.Text(r.Answer()), "\n"), "\n", "\n    ")
	case *api.Tenant:
		return text + "tenant " + r.Metadata.Name
	case *api.Namespace:
		return text + "namespace " + r.Metadata.Name
	case *api.PriorityClass:
		return text + "priority class " + r.Metadata.Name
	case *api.Queue:
		return text + "queue " + r.Metadata.Name
	case lead.NodeChanged:
		return text + fmt.Sprintf("node %s", r.Node)
	}
	return text + fmt.Sprintf("%T", e.Result)
}

// TreeText words the use of a quota tree.
func TreeText(t *api.QuotaTree) string {
	text := "tree " + t.Metadata.Name + ":"
	for _, n := range t.Status.Nodes {
		text += fmt.Sprintf(" %s has %s of %s GPUs,", n.Name, n.Allocated[resource.GPU], n.Quota[resource.GPU])
	}
	return text + fmt.Sprintf(" detached %v", t.Status.Detached)
}
