package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/sdk"
)

func (a *app) whyCommand() *cobra.Command {
	var everyNode bool
	cmd := &cobra.Command{
		Use:   "why NAME | KIND/NAME",
		Short: "Say why a job or an allocation does not run, whether it can, and what would help",
		Long: "why answers in this order: the one reason that binds; whether the object can ever run on the nodes\n" +
			"that are registered now; changes that would help, each tried on a copy of the cluster; and the nodes,\n" +
			"grouped by their reasons.",
		Example: "  muster why train\n  muster why train --nodes\n  muster why allocation/train-0 -o json",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.allNamespaces {
				return usagef("-A: the question is about one object; name its namespace with -n")
			}
			k, name, exact, err := subject(args[0])
			if err != nil {
				return err
			}
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			k, e, err := a.explain(ctx, k, name, exact, sdk.ExplainOptions{EveryNode: everyNode})
			if err != nil {
				return err
			}
			switch a.output {
			case "json", "yaml":
				return a.encode(e)
			case "name":
				a.printf("%s/%s\n", k, e.Name)
			default:
				a.explanation(k, e)
			}
			return nil
		},
		ValidArgsFunction: a.completeNames(jobKind),
	}
	cmd.Flags().BoolVar(&everyNode, "nodes", false, "list every node with its own reasons")
	return cmd
}

// subject reads NAME, which may be a job's or an allocation's, or KIND/NAME,
// which is exact.
func subject(arg string) (k kind, name string, exact bool, err error) {
	exact = strings.Contains(arg, "/")
	if !exact {
		arg = string(jobKind) + "/" + arg
	}
	k, names, err := parseTargets([]string{arg})
	switch {
	case err != nil:
		return k, "", exact, err
	case k == nodeKind:
		return k, "", exact, usagef("%q: only jobs and allocations wait; see muster describe node", arg)
	}
	return k, names[0], exact, nil
}

// explain asks about an object; where the kind is not exact, about the job of
// that name and else about the allocation.
func (a *app) explain(ctx context.Context, k kind, name string, exact bool, o sdk.ExplainOptions) (kind, *api.Explanation, error) {
	if k == jobKind {
		e, err := a.client.Jobs(a.namespace).Explain(ctx, name, o)
		if err == nil || exact || !isNotFound(err) {
			return jobKind, e, err
		}
	}
	e, err := a.client.Allocations(a.namespace).Explain(ctx, name, o)
	if isNotFound(err) && !exact {
		err = fmt.Errorf("there is no job or allocation %q in namespace %q; muster get jobs -A shows all jobs", name, a.namespace)
	}
	return allocationKind, e, err
}

// explanation prints the answer, then each node's part in it where that was asked
// for.
func (a *app) explanation(k kind, e *api.Explanation) {
	a.printf("%s", why.Text(e))
	if len(e.Quota) > 0 {
		a.printf("\nmuster quota explain %s/%s shows the quota that counts, muster quota get%s who holds it\n", e.Namespace, e.Name, a.inNamespace(e.Namespace))
	}
	if len(e.EachNode) > 0 {
		a.printf("\n")
		t := newTable("NODE", "FITS", "WHY NOT MORE")
		for _, n := range e.EachNode {
			why := make([]string, 0, len(n.Reasons))
			for _, r := range n.Reasons {
				why = append(why, r.String())
			}
			t.add(string(n.Node), strconv.Itoa(n.Fit), strings.Join(why, "; "))
		}
		t.write(a.Stdout, "")
	}
	if e.Attempts > 0 && e.LastAttempt != "" {
		a.printf("\nplacement tried %d×, last at %s\n", e.Attempts, e.LastAttempt)
	}
}

// inNamespace is the flag that a command needs for objects of a namespace, "" where a
// command without the flag finds them.
func (a *app) inNamespace(namespace string) string {
	if namespace == a.ownNamespace {
		return ""
	}
	return " -n " + namespace
}
