package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) boostCommand() *cobra.Command {
	var o api.BoostOptions
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "boost JOB",
		Short: "Give a job that waits a greater priority for a while",
		Long: "boost gives the members of a job that wait a greater priority, and so another place in their\n" +
			"queue. Members that start keep it until they are back in the queue; those that still wait when the\n" +
			"time is over have the job's own priority again. A later boost replaces the one before.",
		Example: "  muster boost train --priority 500 --for 1h --reason 'production incident'",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := jobNames(args, "only jobs are boosted")
			if err != nil {
				return err
			}
			switch {
			case !cmd.Flags().Changed("priority"):
				return usagef("--priority: missing: want a number above the job's own priority")
			case o.NewPriority < 1 || o.NewPriority > api.MaxPriority:
				return usagef("--priority %d: want 1..%d", o.NewPriority, int32(api.MaxPriority))
			case length < time.Second || length > api.MaxBoost:
				return usagef("--for %s: want 1s..168h", length)
			}
			o.Duration = length.String()
			if err := a.connect(); err != nil {
				return err
			}
			return a.boost(cmd.Context(), names[0], o)
		},
		ValidArgsFunction: a.completeNames(jobKind),
	}
	cmd.Flags().Int32Var(&o.NewPriority, "priority", 0, "the new priority, above the job's own; required")
	cmd.Flags().DurationVar(&length, "for", time.Hour, "how long, 1s..168h")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why, for the job's record")
	cmd.Flags().StringVar(&o.ApprovedBy, "approved-by", "", "who has approved it, for people; it gives no right")
	return cmd
}

func (a *app) boost(ctx context.Context, name string, o api.BoostOptions) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := a.client.Jobs(a.namespace).Boost(ctx, name, o)
	if err != nil {
		return fmt.Errorf("boost job %s/%s: %w", a.namespace, name, err)
	}
	switch a.output {
	case "json", "yaml":
		return a.encode(got)
	case "name":
		a.printf("job/%s\n", name)
	default:
		a.printf("job %q has priority %d until %s (%d before); place %d in its queue\n", name, got.NewPriority, got.BoostExpires, got.PreviousPriority, got.NewQueuePosition)
	}
	return nil
}
