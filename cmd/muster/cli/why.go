package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "why NAME | KIND/NAME",
		Short:   "Say why a job or an allocation is not running: what is short, by how much, and where",
		Example: "  muster why train\n  muster why allocation/train-0 -o json",
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
			k, e, err := a.explain(ctx, k, name, exact)
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
func (a *app) explain(ctx context.Context, k kind, name string, exact bool) (kind, *api.Explanation, error) {
	if k == jobKind {
		e, err := a.client.Jobs(a.namespace).Explain(ctx, name)
		if err == nil || exact || !isNotFound(err) {
			return jobKind, e, err
		}
	}
	e, err := a.client.Allocations(a.namespace).Explain(ctx, name)
	if isNotFound(err) && !exact {
		err = fmt.Errorf("there is no job or allocation %q in namespace %q; muster get jobs -A shows all jobs", name, a.namespace)
	}
	return allocationKind, e, err
}

// explanation prints the answer: the sentence, then what is short, then each
// node's part in it.
func (a *app) explanation(k kind, e *api.Explanation) {
	head := fmt.Sprintf("%s %s/%s: %s", k, e.Namespace, e.Name, e.Phase)
	if e.QueuePosition > 0 {
		head += fmt.Sprintf(", position %d", e.QueuePosition)
		if e.Queue != "" {
			head += fmt.Sprintf(" in queue %s", e.Queue)
		}
	}
	a.printf("%s\n%s\n", head, e.Summary)
	if len(e.Quota) > 0 {
		a.limits(e.Quota, e.Summary)
		a.printf("\nQuota holds it back; muster quota explain %s/%s says more, muster quota get shows who holds what\n", e.Namespace, e.Name)
	}
	a.reasons("Short in all", e.Shortages)
	if len(e.Nodes) > 0 {
		a.printf("\n")
		t := newTable("NODE", "FITS", "WHY NOT MORE")
		for _, n := range e.Nodes {
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

// reasons prints amounts in columns and what has none in words.
func (a *app) reasons(title string, reasons []resource.Reason) {
	if len(reasons) == 0 {
		return
	}
	a.printf("\n%s:\n", title)
	t := newTable("REASON", "RESOURCE", "WANT", "HAVE", "SHORT", "DETAIL")
	for _, r := range reasons {
		if r.Resource == "" {
			t.add(r.Code, "", "", "", "", r.Detail)
			continue
		}
		amount := func(v int64) string { return humanAmount(r.Resource, resource.FormatAmount(r.Resource, v)) }
		t.add(r.Code, string(r.Resource), amount(r.Want), amount(r.Have), amount(r.Short()), r.Detail)
	}
	t.write(a.Stdout, "  ")
}
