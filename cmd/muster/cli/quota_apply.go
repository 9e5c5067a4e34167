package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) quotaApplyCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or replace quota trees, forests, bindings and resource quotas",
		Long: "apply makes quotas what files say, JSON or YAML, several documents to a file if need be, in\n" +
			"the order given: trees before the forests and bindings that name them. Nothing is changed\n" +
			"unless all documents are well formed. A document with a resourceVersion is refused where the\n" +
			"object has changed since. Limits that are lowered below what is used end nothing.",
		Example: "  muster quota apply -f examples/quota-tree.json -f examples/quota-binding.yaml",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case len(files) == 0:
				return usagef("name a file with -f, or -f - for standard input")
			case a.allNamespaces:
				return usagef("-A: a resource quota is applied to one namespace")
			}
			if err := a.connect(); err != nil {
				return err
			}
			objects, err := a.read(files)
			if err != nil {
				return err
			}
			for _, o := range objects {
				if !o.kind().isQuota() {
					return fmt.Errorf("%s is no quota: use muster submit", o)
				}
			}
			return a.applyAll(cmd.Context(), objects)
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "file to apply, - for standard input; may be repeated")
	return cmd
}

// applyAll applies in order and stops at the first failure, since later
// documents may need it; what was applied stays.
func (a *app) applyAll(ctx context.Context, objects []object) error {
	var applied []object
	var failure error
	for _, o := range objects {
		got, verb, err := a.apply(ctx, o)
		if err != nil {
			failure = fmt.Errorf("apply %s: %w", o, err)
			if left := len(objects) - len(applied) - 1; left > 0 {
				failure = fmt.Errorf("%w (%s behind it: not applied)", failure, plural(fmt.Sprint(left), "document"))
			}
			break
		}
		applied = append(applied, got)
		if a.isTable() {
			a.printf("%s %s\n", got, verb)
		}
		a.warnQuota(ctx, got)
	}
	if !a.isTable() && len(applied) > 0 {
		failure = errors.Join(failure, a.print(applied, listOf(applied)))
	}
	return failure
}

// apply creates one object or replaces it where it differs.
func (a *app) apply(ctx context.Context, o object) (got object, verb string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	m := o.meta()
	current, err := a.fetch(ctx, o.kind(), m.Namespace, m.Name, getOptions)
	switch {
	case isNotFound(err) && m.ResourceVersion != "":
		return o, "", fmt.Errorf("it is gone, and the document has the resourceVersion %s of one that was: remove it from the document to create it anew", m.ResourceVersion)
	case isNotFound(err):
		got, err = a.createQuota(ctx, o)
		return got, "created", err
	case err != nil:
		return o, "", err
	case m.ResourceVersion == "":
		m.ResourceVersion = current.meta().ResourceVersion
	}
	if sameQuota(o, current) {
		return current, "unchanged", nil
	}
	got, err = a.replaceQuota(ctx, o)
	var status *api.Status
	if errors.As(err, &status) && status.Code == http.StatusConflict {
		where := ""
		if o.kind().namespaced() {
			where = " -n " + m.Namespace
		}
		err = fmt.Errorf("%w; look at it with muster quota get %s %s -o yaml%s and apply again", err, o.kind(), m.Name, where)
	}
	return got, "configured", err
}

func (a *app) createQuota(ctx context.Context, o object) (got object, err error) {
	switch {
	case o.quota != nil:
		got.quota, err = a.client.ResourceQuotas(o.quota.Metadata.Namespace).Create(ctx, o.quota)
	case o.tree != nil:
		got.tree, err = a.client.QuotaTrees().Create(ctx, o.tree)
	case o.forest != nil:
		got.forest, err = a.client.QuotaForests().Create(ctx, o.forest)
	default:
		got.binding, err = a.client.QuotaBindings().Create(ctx, o.binding)
	}
	return got, err
}

func (a *app) replaceQuota(ctx context.Context, o object) (got object, err error) {
	switch {
	case o.quota != nil:
		got.quota, err = a.client.ResourceQuotas(o.quota.Metadata.Namespace).Update(ctx, o.quota)
	case o.tree != nil:
		got.tree, err = a.client.QuotaTrees().Update(ctx, o.tree)
	case o.forest != nil:
		got.forest, err = a.client.QuotaForests().Update(ctx, o.forest)
	default:
		got.binding, err = a.client.QuotaBindings().Update(ctx, o.binding)
	}
	return got, err
}

// sameQuota reports whether two objects say the same: specification, labels,
// annotations and, where the document has one, the version.
func sameQuota(wanted, current object) bool {
	w, c := wanted.meta(), current.meta()
	if w.ResourceVersion != c.ResourceVersion {
		return false
	}
	return bytes.Equal(essence(wanted), essence(current))
}

// essence is what an operator says in an object, in one way of writing.
func essence(o object) []byte {
	m := o.meta()
	e := struct {
		Labels, Annotations map[string]string
		Spec                any
	}{Labels: m.Labels, Annotations: m.Annotations}
	if len(e.Labels) == 0 {
		e.Labels = nil
	}
	if len(e.Annotations) == 0 {
		e.Annotations = nil
	}
	switch {
	case o.quota != nil:
		e.Spec = o.quota.Spec
	case o.tree != nil:
		_ = json.Unmarshal(o.tree.Spec, &e.Spec) // a decoded document's spec is JSON; keys are then in order
	case o.forest != nil:
		e.Spec = o.forest.Spec
	case o.binding != nil:
		e.Spec = o.binding.Spec
	}
	raw, _ := json.Marshal(e) // strings and numbers always encode
	return raw
}

// warnQuota says what of an applied object has no effect, or what it has
// already run into.
func (a *app) warnQuota(ctx context.Context, o object) {
	var warnings []string
	switch {
	case o.binding != nil:
		warnings = a.groupFaults(ctx, o.binding)
	case o.tree != nil:
		warnings = treeFaults(&o.tree.Status)
		for _, n := range o.tree.Status.Nodes {
			for _, name := range n.OverQuota {
				warnings = append(warnings, fmt.Sprintf("node %s is over quota: %s of %s %s; nothing ends by that, new work waits; muster quota reclaim %s ends what has to",
					n.Name, human(name, amountOf(name, n.Allocated)), human(name, amountOf(name, n.Quota)), name, o.tree.Metadata.Name))
			}
		}
	case o.quota != nil:
		for _, field := range o.quota.RecordedOnly() {
			warnings = append(warnings, "recorded but not acted on by this version: "+field)
		}
		for _, c := range o.quota.Status.Conditions {
			if c.Status == "True" {
				warnings = append(warnings, join(c.Type, cmp.Or(c.Message, c.Reason)))
			}
		}
	}
	for _, w := range warnings {
		a.notef("warning: %s: %s\n", o, w)
	}
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
