package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

func (a *app) reconcileCommand() *cobra.Command {
	var adopt, release, all bool
	var grace seconds
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "reconcile NODE… | --all",
		Short: "End the quarantine of nodes after the store was restored from a backup",
		Long: "An agent that sees the store go back is in quarantine: what runs there goes on, and nothing new\n" +
			"is promised until you say what becomes of what the store has lost. Without a flag reconcile\n" +
			"shows what the agent holds beside what the store has, and changes nothing.\n\n" +
			"With --adopt all that has no record gets one again, under its name, or as adopted-… where that\n" +
			"is taken; a gang whose members are not all held any more is stopped. With --release all that has\n" +
			"no record is stopped. Records of what the agent does not hold are ended either way: it had\n" +
			"ended after the backup was made. Interrupted, it may be run again.",
		Example: "  muster reconcile gpu-07\n  muster reconcile --all --adopt",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case adopt && release:
				return usagef("--adopt, --release: want one of the two")
			case all == (len(args) > 0):
				return usagef("want the names of nodes, or --all")
			case timeout <= 0:
				return usagef("--timeout %s is not positive", timeout)
			}
			o := api.ReconcileOptions{GracePeriodSeconds: grace.value}
			switch {
			case adopt:
				o.Mode = api.ReconcileAdopt
			case release:
				o.Mode = api.ReconcileRelease
			}
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if all {
				var err error
				if args, err = a.quarantined(ctx); err != nil {
					return err
				}
			}
			return a.reconcile(ctx, args, o)
		},
		ValidArgsFunction: a.completeNames(nodeKind),
	}
	cmd.Flags().BoolVar(&adopt, "adopt", false, "make records again of what the store has lost")
	cmd.Flags().BoolVar(&release, "release", false, "stop what the store has lost")
	cmd.Flags().BoolVar(&all, "all", false, "all nodes in quarantine")
	cmd.Flags().Var(&grace, "grace", "time to stop in of what is released, e.g. 30s (default: the server's)")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

// quarantined lists the nodes that are.
func (a *app) quarantined(ctx context.Context) ([]string, error) {
	l, err := a.list(ctx, nodeKind, sdk.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range l.objects {
		if as[api.Node](o).Status.Phase == "Quarantined" {
			names = append(names, o.meta().Name)
		}
	}
	if len(names) == 0 && a.isTable() {
		a.printf("no node is in quarantine\n")
	}
	return names, nil
}

// reconcile does one node after the other, and goes on after a failure.
func (a *app) reconcile(ctx context.Context, names []string, o api.ReconcileOptions) error {
	var failures []error
	for _, name := range names {
		r, err := a.client.Nodes().Reconcile(ctx, name, o)
		switch {
		case err != nil:
			failures = append(failures, fmt.Errorf("reconcile node %s: %w", name, err))
		case a.isTable():
			a.reconciliation(r)
		default:
			failures = append(failures, a.encode(r))
		}
	}
	return errors.Join(failures...)
}

// reconciliation prints the grants that were found, and their outcome.
func (a *app) reconciliation(r *api.Reconciliation) {
	switch {
	case r.Mode != "":
		a.printf("node %q reconciled\n", r.Node)
	case r.Quarantine == "":
		a.printf("node %q is not in quarantine\n", r.Node)
	default:
		a.printf("node %q is in quarantine: %s\n", r.Node, r.Quarantine)
	}
	if len(r.Grants) > 0 {
		t := newTable("TRANSACTION", "UNIT", "TENANT", "MEMBERS", "DEVICES", "HERE", "STORE", "--adopt", "--release")
		for _, g := range r.Grants {
			members := make([]string, len(g.Members))
			for i, m := range g.Members {
				members[i] = strconv.Itoa(m)
			}
			t.add(g.Transaction, g.Unit, g.Tenant, strings.Join(members, ","), strings.Join(g.Devices, ","), g.State, g.Record, g.Adopt, g.Release)
		}
		t.write(a.Stdout, "")
	}
	if len(r.Records) > 0 {
		a.printf("\nnot held there any more:\n")
		t := newTable("TRANSACTION", "UNIT", "STORE", "OUTCOME")
		for _, g := range r.Records {
			t.add(g.Transaction, g.Unit, g.Record, g.Outcome)
		}
		t.write(a.Stdout, "")
	}
}
