package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) preemptCommand() *cobra.Command {
	var grace seconds
	var reason string
	cmd := &cobra.Command{
		Use:   "preempt ALLOCATION…",
		Short: "End running allocations under notice",
		Long: "preempt gives allocations notice, lets their grace run and stops them. An allocation ends as\n" +
			"Preempted; a member of a job leaves with its whole unit, which goes back to its place in the\n" +
			"queue. It returns once the notice is durable.",
		Example: "  muster preempt batch-7 --grace 2m --reason \"capacity for an incident\"",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.allNamespaces {
				return usagef("-A: preempting is done in one namespace")
			}
			names, err := a.named(allocationKind, args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			var failures []error
			for _, name := range names {
				p, err := a.client.Preempt(ctx, a.namespace, api.PreemptionRequest{TargetAllocation: name, GracePeriodSeconds: grace.value, Reason: reason})
				if err != nil {
					failures = append(failures, fmt.Errorf("preempt %s/%s: %w", a.namespace, name, err))
					continue
				}
				if a.isTable() {
					a.printf("allocation %q has notice, its grace ends %s\n", name, p.GracePeriodEnds)
				} else {
					failures = append(failures, a.encode(p))
				}
			}
			return errors.Join(failures...)
		},
		ValidArgsFunction: a.completeNames(allocationKind),
	}
	cmd.Flags().Var(&grace, "grace", "time to stop in, e.g. 30s (default: the server's)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the owners to see")
	return cmd
}

func (a *app) drainCommand() *cobra.Command {
	var grace seconds
	var reason string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Empty a node: cordon it, and end what runs there under notice",
		Long: "drain keeps new work off a node and gives notice to whatever has a member there: allocations\n" +
			"end as Preempted, jobs go back to the queue, gangs whole. It waits until the node is empty;\n" +
			"interrupted, it may be run again. uncordon lets new work onto the node.",
		Example: "  muster drain gpu-07 --grace 5m --reason \"a new power supply\"",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return usagef("--timeout %s is not positive", timeout)
			}
			names, err := a.named(nodeKind, args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return a.drain(ctx, names[0], api.DrainOptions{GracePeriodSeconds: grace.value, Reason: reason})
		},
		ValidArgsFunction: a.completeNames(nodeKind),
	}
	cmd.Flags().Var(&grace, "grace", "time to stop in, e.g. 30s (default: the server's)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the owners to see")
	cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Minute, "how long to wait for the node to be empty")
	return cmd
}

// drainPause is between two looks at a node that is drained.
const drainPause = time.Second

// drain asks again and again until nothing is left, and reports each change.
func (a *app) drain(ctx context.Context, name string, o api.DrainOptions) error {
	told := -1
	for {
		d, err := a.client.Nodes().Drain(ctx, name, o)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && told > 0:
			return fmt.Errorf("drain %s: %d allocations are left; run it again to wait on", name, told)
		case err != nil:
			return fmt.Errorf("drain %s: %w", name, err)
		case d.Status == "Drained":
			if !a.isTable() {
				return a.encode(d)
			}
			a.printf("node %q drained\n", name)
			return nil
		case left(d) != told && a.isTable():
			a.printf("node %q cordoned, %d of %d allocations evicted%s\n", name, d.Progress.Evicted, d.AllocationsToEvict, ends(d))
		}
		told = left(d)
		select {
		case <-time.After(drainPause):
		case <-ctx.Done():
			return fmt.Errorf("drain %s: %d allocations are left; run it again to wait on", name, told)
		}
	}
}

// left is the number of allocations that are still on the node.
func left(d *api.Drain) int { return d.Progress.Pending + d.Progress.Failed }

// ends says when the last grace does, as far as notice has been given, and how many
// allocations stay beyond their grace.
func ends(d *api.Drain) string {
	text := ""
	if d.EstimatedCompletionTime != "" {
		text = ", the last grace ends " + d.EstimatedCompletionTime
	}
	if d.Progress.Failed > 0 {
		text += fmt.Sprintf("; %d did not leave within their grace: look at the agent, or `muster fence` the node", d.Progress.Failed)
	}
	return text
}
