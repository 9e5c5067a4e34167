package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

func (a *app) nodeEvictionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "evictions NODE",
		Short: "Show the allocations on a node that are being evicted",
		Long: "evictions shows the notices of evictions on a node, with the time until which each allocation may run.\n" +
			"An allocation that its owner has deleted is not among them.",
		Example: "  muster node evictions gpu-07",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := a.named(nodeKind, args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			list, err := a.client.Nodes().Evictions(ctx, names[0])
			if err != nil {
				return fmt.Errorf("evictions on node %s: %w", names[0], err)
			}
			switch {
			case a.output == "name":
				for _, n := range list.Items {
					a.printf("allocation/%s\n", n.Allocation)
				}
				return nil
			case !a.isTable():
				return a.encode(list)
			}
			t := newTable("NAMESPACE", "ALLOCATION", "GRACE", "DEADLINE", "REASON")
			for _, n := range list.Items {
				t.add(n.Namespace, n.Allocation, strconv.FormatInt(n.GracePeriodSeconds, 10)+"s", n.Deadline, n.Reason)
			}
			t.write(a.Stdout, "")
			return nil
		},
		ValidArgsFunction: a.completeNames(nodeKind),
	}
}
