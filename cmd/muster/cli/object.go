package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// kind is a kind of object as people name it.
type kind string

const (
	allocationKind    kind = "allocation"
	jobKind           kind = "job"
	nodeKind          kind = "node"
	resourceQuotaKind kind = "resourcequota"
	quotaTreeKind     kind = "quotatree"
	quotaForestKind   kind = "quotaforest"
	quotaBindingKind  kind = "quotabinding"
)

// kinds are all kinds in the order in which they are shown, and quotaKinds
// those of muster quota.
var (
	kinds      = []kind{jobKind, allocationKind, nodeKind, quotaTreeKind, quotaForestKind, quotaBindingKind, resourceQuotaKind}
	quotaKinds = kinds[3:]
)

// shortNames are the other names of kinds, besides the plural.
var shortNames = map[string]kind{
	"alloc": allocationKind, "allocs": allocationKind, "no": nodeKind,
	"rq": resourceQuotaKind, "quota": resourceQuotaKind, "quotas": resourceQuotaKind,
	"qt": quotaTreeKind, "qf": quotaForestKind, "qb": quotaBindingKind,
}

func (k kind) plural() string { return string(k) + "s" }

// namespaced reports whether objects of the kind live in namespaces.
func (k kind) namespaced() bool {
	return k == allocationKind || k == jobKind || k == resourceQuotaKind
}

func (k kind) isQuota() bool { return slices.Contains(quotaKinds, k) }

// plurals lists kinds as an error or a completion does.
func plurals(of []kind) []string {
	names := make([]string, 0, len(of))
	for _, k := range of {
		names = append(names, k.plural())
	}
	return names
}

// parseKind reads a kind in any of its names.
func parseKind(s string) (kind, error) {
	word := strings.ToLower(s)
	for _, k := range kinds {
		if word == string(k) || word == k.plural() {
			return k, nil
		}
	}
	if k, ok := shortNames[word]; ok {
		return k, nil
	}
	return "", usagef("unknown kind %q: want one of %s", s, strings.Join(plurals(kinds), ", "))
}

// parseTargets reads "KIND [NAME…]" or "KIND/NAME…".
func parseTargets(args []string) (kind, []string, error) {
	if len(args) == 0 {
		return "", nil, usagef("name a kind: one of %s", strings.Join(plurals(kinds), ", "))
	}
	word, name, combined := strings.Cut(args[0], "/")
	k, err := parseKind(word)
	if err != nil {
		return "", nil, err
	}
	names := args[1:]
	if combined {
		names = []string{name}
		for _, arg := range args[1:] {
			w, n, both := strings.Cut(arg, "/")
			if other, err := parseKind(w); !both || err != nil || other != k {
				return "", nil, usagef("%q: after %q every argument is %s/NAME", arg, args[0], k)
			}
			names = append(names, n)
		}
	}
	for _, n := range names {
		if k == quotaTreeKind || k == quotaForestKind {
			if !api.IsTreeName(n) {
				return "", nil, usagef("%q is not the name of a %s: want 1..63 letters, digits, '-', '_' and '.'", n, k)
			}
			continue
		}
		if !api.IsSubdomain(n) {
			return "", nil, usagef("%q is not a name: want 1..253 of a-z, 0-9, '-' and '.'", n)
		}
	}
	return k, names, nil
}

// object is one of the kinds.
//
// Invariant: exactly one of the pointers is set.
type object struct {
	allocation *api.Allocation
	job        *api.Job
	node       *api.Node
	quota      *api.ResourceQuota
	tree       *api.QuotaTree
	forest     *api.QuotaForest
	binding    *api.QuotaBinding
}

// parts are what all kinds have: the kind, the metadata, and the object as its
// own type for encoding.
func (o object) parts() (kind, *api.ObjectMeta, any) {
	switch {
	case o.allocation != nil:
		return allocationKind, &o.allocation.Metadata, o.allocation
	case o.job != nil:
		return jobKind, &o.job.Metadata, o.job
	case o.quota != nil:
		return resourceQuotaKind, &o.quota.Metadata, o.quota
	case o.tree != nil:
		return quotaTreeKind, &o.tree.Metadata, o.tree
	case o.forest != nil:
		return quotaForestKind, &o.forest.Metadata, o.forest
	case o.binding != nil:
		return quotaBindingKind, &o.binding.Metadata, o.binding
	}
	return nodeKind, &o.node.Metadata, o.node
}

func (o object) kind() kind {
	k, _, _ := o.parts()
	return k
}

func (o object) meta() *api.ObjectMeta {
	_, m, _ := o.parts()
	return m
}

func (o object) document() any {
	_, _, d := o.parts()
	return d
}

// state is the phase and the one line about it; only work has them.
func (o object) state() (api.Phase, string) {
	switch {
	case o.allocation != nil:
		return o.allocation.Status.Phase, o.allocation.Status.Message
	case o.job != nil:
		return o.job.Status.Phase, o.job.Status.Message
	}
	return "", ""
}

func (o object) queuePosition() int {
	switch {
	case o.allocation != nil:
		return o.allocation.Status.QueuePosition
	case o.job != nil:
		return o.job.Status.QueuePosition
	}
	return 0
}

// String is "kind namespace/name".
func (o object) String() string {
	m := o.meta()
	if m.Namespace == "" {
		return fmt.Sprintf("%s %s", o.kind(), m.Name)
	}
	return fmt.Sprintf("%s %s/%s", o.kind(), m.Namespace, m.Name)
}

// fetch gets one object.
func (a *app) fetch(ctx context.Context, k kind, namespace, name string, g sdk.GetOptions) (o object, err error) {
	switch k {
	case allocationKind:
		o.allocation, err = a.client.Allocations(namespace).Get(ctx, name, g)
	case jobKind:
		o.job, err = a.client.Jobs(namespace).Get(ctx, name, g)
	case nodeKind:
		o.node, err = a.client.Nodes().Get(ctx, name)
	case resourceQuotaKind:
		o.quota, err = a.client.ResourceQuotas(namespace).Get(ctx, name)
	case quotaTreeKind:
		o.tree, err = a.client.QuotaTrees().Get(ctx, name)
	case quotaForestKind:
		o.forest, err = a.client.QuotaForests().Get(ctx, name)
	case quotaBindingKind:
		o.binding, err = a.client.QuotaBindings().Get(ctx, name)
	}
	return o, hint(k, err)
}

// remove deletes one object and returns its last state.
func (a *app) remove(ctx context.Context, k kind, namespace, name string, options api.DeleteOptions) (o object, err error) {
	switch k {
	case allocationKind:
		o.allocation, err = a.client.Allocations(namespace).Delete(ctx, name, options)
	case jobKind:
		o.job, err = a.client.Jobs(namespace).Delete(ctx, name, options)
	case nodeKind:
		o.node, err = a.client.Nodes().Delete(ctx, name)
	case resourceQuotaKind:
		o.quota, err = a.client.ResourceQuotas(namespace).Delete(ctx, name)
	case quotaTreeKind:
		o.tree, err = a.client.QuotaTrees().Delete(ctx, name)
	case quotaForestKind:
		o.forest, err = a.client.QuotaForests().Delete(ctx, name)
	case quotaBindingKind:
		o.binding, err = a.client.QuotaBindings().Delete(ctx, name)
	}
	return o, hint(k, err)
}

// hint says where to look for a quota that is not there.
func hint(k kind, err error) error {
	if k.isQuota() && isNotFound(err) {
		return fmt.Errorf("%w; muster quota get %s shows what there is", err, k.plural())
	}
	return err
}

// completeTargets offers kinds, then the names of that kind.
func (a *app) completeTargets(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeKinds(kinds, cmd, args)
}

// completeQuotas is completeTargets for muster quota.
func (a *app) completeQuotas(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeKinds(quotaKinds, cmd, args)
}

func (a *app) completeKinds(of []kind, cmd *cobra.Command, args []string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return plurals(of), cobra.ShellCompDirectiveNoFileComp
	}
	k, err := parseKind(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return a.completeNames(k)(cmd, nil, "")
}

// completeNames offers the names of one kind, when the server answers.
func (a *app) completeNames(k kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completionTimeout)
		defer cancel()
		if a.connect() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		l, err := a.list(ctx, k, sdk.ListOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := make([]string, 0, len(l.objects))
		for _, o := range l.objects {
			names = append(names, o.meta().Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
