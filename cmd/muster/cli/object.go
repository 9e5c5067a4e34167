package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// kind is a kind of object as people name it.
type kind string

const (
	allocationKind kind = "allocation"
	jobKind        kind = "job"
	nodeKind       kind = "node"
)

// parseKind reads a kind in any of its names.
func parseKind(s string) (kind, error) {
	switch strings.ToLower(s) {
	case "allocation", "allocations", "alloc", "allocs":
		return allocationKind, nil
	case "job", "jobs":
		return jobKind, nil
	case "node", "nodes", "no":
		return nodeKind, nil
	}
	return "", usagef("unknown kind %q: want allocations, jobs or nodes", s)
}

// parseTargets reads "KIND [NAME…]" or "KIND/NAME…".
func parseTargets(args []string) (kind, []string, error) {
	if len(args) == 0 {
		return "", nil, usagef("name a kind: allocations, jobs or nodes")
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
		if !api.IsSubdomain(n) {
			return "", nil, usagef("%q is not a name: want 1..253 of a-z, 0-9, '-' and '.'", n)
		}
	}
	return k, names, nil
}

// object is one of the three kinds.
//
// Invariant: exactly one of the pointers is set.
type object struct {
	allocation *api.Allocation
	job        *api.Job
	node       *api.Node
}

func (o object) kind() kind {
	switch {
	case o.allocation != nil:
		return allocationKind
	case o.job != nil:
		return jobKind
	}
	return nodeKind
}

func (o object) meta() *api.ObjectMeta {
	switch {
	case o.allocation != nil:
		return &o.allocation.Metadata
	case o.job != nil:
		return &o.job.Metadata
	}
	return &o.node.Metadata
}

// state is the phase and the one line about it; nodes have none.
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

// document is the object as its own type, for encoding.
func (o object) document() any {
	switch {
	case o.allocation != nil:
		return o.allocation
	case o.job != nil:
		return o.job
	}
	return o.node
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
	}
	return o, err
}

// remove deletes one object and returns its last state.
func (a *app) remove(ctx context.Context, k kind, namespace, name string, options api.DeleteOptions) (o object, err error) {
	switch k {
	case allocationKind:
		o.allocation, err = a.client.Allocations(namespace).Delete(ctx, name, options)
	case jobKind:
		o.job, err = a.client.Jobs(namespace).Delete(ctx, name, options)
	case nodeKind:
		err = fmt.Errorf("nodes are not deleted")
	}
	return o, err
}

// completeTargets offers kinds, then the names of that kind.
func (a *app) completeTargets(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return []string{"allocations", "jobs", "nodes"}, cobra.ShellCompDirectiveNoFileComp
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
