package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

func (a *app) quotaReclaimCommand() *cobra.Command {
	var dryRun, yes bool
	var grace seconds
	cmd := &cobra.Command{
		Use:   "reclaim TREE",
		Short: "End what holds a quota tree's nodes over their quotas",
		Long: "reclaim ends work until no node of a tree is over its quota any more, after quotas were\n" +
			"lowered: borrowers before owners, the lowest priority first, then the newest, and nobody who\n" +
			"need not. Jobs end whole; what must not be evicted stays. It shows whom it would end and asks;\n" +
			"without a terminal it wants --yes.",
		Example: "  muster quota reclaim company --dry-run\n  muster quota reclaim company --grace 5m",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !api.IsTreeName(args[0]):
				return usagef("%q is not the name of a quotatree: want 1..63 letters, digits, '-', '_' and '.'", args[0])
			case !dryRun && !yes && !isTerminal(a.Stdin):
				return usagef("this ends running work, and there is no terminal to ask on: add --yes, or --dry-run to see whom it would end")
			}
			if err := a.connect(); err != nil {
				return err
			}
			return a.reclaim(cmd.Context(), args[0], grace.value, dryRun, yes)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeNames(quotaTreeKind)(cmd, args, prefix)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show whom it would end")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().Var(&grace, "grace", "time to stop in, e.g. 30s (default: the server's)")
	return cmd
}

// errNotConfirmed ends reclaim where the operator did not say yes.
var errNotConfirmed = errors.New("nothing was ended")

// reclaim shows the work that it would end, asks where it has to, and ends the work.
func (a *app) reclaim(ctx context.Context, tree string, grace *int64, dryRun, yes bool) error {
	if dryRun || !yes {
		plan, err := a.callReclaim(ctx, tree, sdk.ReclaimOptions{DryRun: true, GracePeriodSeconds: grace})
		if err != nil {
			return err
		}
		if dryRun || len(plan.Units) == 0 {
			return a.printReclaim(plan)
		}
		a.notef("%s\n", reclaimText(plan))
		if !a.confirmed(ctx, "End them? [y/N] ") {
			return errNotConfirmed
		}
	}
	done, err := a.callReclaim(ctx, tree, sdk.ReclaimOptions{GracePeriodSeconds: grace})
	if err != nil {
		return err
	}
	return a.printReclaim(done)
}

func (a *app) callReclaim(ctx context.Context, tree string, o sdk.ReclaimOptions) (*api.QuotaReclaim, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := a.client.QuotaTrees().Reclaim(ctx, tree, o)
	if isNotFound(err) {
		return nil, fmt.Errorf("there is no quotatree %q; muster quota get quotatrees shows what there is", tree)
	}
	if err != nil {
		return nil, fmt.Errorf("reclaim %s: %w", tree, err)
	}
	return r, nil
}

// confirmed asks on the terminal; the end of ctx or of the input is a no.
func (a *app) confirmed(ctx context.Context, question string) bool {
	a.notef("%s", question)
	line := make(chan string, 1) // the read outlives a ctx that ends first
	go func() {
		text, _ := bufio.NewReader(io.LimitReader(a.Stdin, 64)).ReadString('\n')
		line <- text
	}()
	select {
	case text := <-line:
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			return true
		}
	case <-ctx.Done():
	}
	return false
}

func (a *app) printReclaim(r *api.QuotaReclaim) error {
	switch a.output {
	case "json", "yaml":
		return a.encode(r)
	case "name":
		for i := range r.Units {
			a.printf("%s/%s\n", strings.ToLower(r.Units[i].Kind), r.Units[i].Consumer)
		}
	default:
		a.printf("%s\n", reclaimText(r))
	}
	return nil
}

// reclaimText lists the work that ends, or would, with the reasons.
func reclaimText(r *api.QuotaReclaim) string {
	text := r.Summary
	for i := range r.Nodes {
		text += fmt.Sprintf("\n  %s: %s beyond its quota", r.Nodes[i].Node, amounts(r.Nodes[i].Over))
	}
	if len(r.Units) > 0 {
		text += "\n" + map[bool]string{true: "Would end:", false: "Told to end:"}[r.DryRun]
	}
	for i := range r.Units {
		u := &r.Units[i]
		text += fmt.Sprintf("\n  %s %s: %s, priority %d, for %s", strings.ToLower(u.Kind), u.Consumer, amounts(u.Request), u.Priority, u.Node)
	}
	if len(r.Remaining) > 0 {
		text += "\nStays over quota:"
	}
	for i := range r.Remaining {
		text += fmt.Sprintf("\n  %s: %s", r.Remaining[i].Node, amounts(r.Remaining[i].Over))
	}
	return text
}
