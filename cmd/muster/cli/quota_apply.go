package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) quotaApplyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or replace quota trees, forests, bindings and resource quotas",
		Long: "apply makes quotas what files say, JSON or YAML, several documents to a file if need be, in\n" +
			"the order given: trees before the forests and bindings that name them. Nothing is changed\n" +
			"unless all documents are well formed. A document with a resourceVersion is refused where the\n" +
			"object has changed since. Limits that are lowered below what is used end nothing.",
		Example: "  muster quota apply -f examples/quota-tree.json -f examples/quota-binding.yaml",
		Args:    arguments(cobra.NoArgs),
	}
	a.applies(cmd, "a resource quota is applied to one namespace", func(o object) error {
		if !o.kind().isQuota() {
			return fmt.Errorf("%s is no quota: use muster apply", o)
		}
		return nil
	})
	return cmd
}

// treeWarnings names the parts of a tree that are not in force, or over their quota.
func treeWarnings(t *api.QuotaTree) []string {
	warnings := treeFaults(&t.Status)
	for _, n := range t.Status.Nodes {
		for _, name := range n.OverQuota {
			warnings = append(warnings, fmt.Sprintf("node %s is over quota: %s of %s %s; nothing ends by that, new work waits; muster quota reclaim %s ends what has to",
				n.Name, human(name, amountOf(name, n.Allocated)), human(name, amountOf(name, n.Quota)), name, t.Metadata.Name))
		}
	}
	return warnings
}

// quotaWarnings names the limits of a resource quota that are exceeded.
func quotaWarnings(q *api.ResourceQuota) []string {
	var warnings []string
	for _, c := range q.Status.Conditions {
		if c.Status == "True" {
			warnings = append(warnings, join(c.Type, cmp.Or(c.Message, c.Reason)))
		}
	}
	return warnings
}

// groupFaults says which groups of a binding are none now; trees may come and
// change later.
func (a *app) groupFaults(ctx context.Context, b *api.QuotaBinding) []string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var faults []string
	for _, tree := range slices.Sorted(maps.Keys(b.Spec.Groups)) {
		group := b.Spec.Groups[tree]
		t, err := a.client.QuotaTrees().Get(ctx, tree)
		switch {
		case isNotFound(err):
			faults = append(faults, fmt.Sprintf("there is no quota tree %s; the namespace's work waits until there is", tree))
		case err != nil:
			faults = append(faults, fmt.Sprintf("its group on quota tree %s was not checked: %v", tree, err))
		case !slices.ContainsFunc(t.Status.Nodes, func(n api.QuotaNodeStatus) bool { return n.Name == group && n.Leaf }):
			faults = append(faults, fmt.Sprintf("%s is no group of quota tree %s, which has %s; the namespace's work waits until it is", group, tree, leaves(t)))
		}
	}
	return faults
}

// leaves lists the groups of a tree, the first few of them.
func leaves(t *api.QuotaTree) string {
	const most = 8
	var names []string
	for _, n := range t.Status.Nodes {
		if n.Leaf {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ") + more
}
