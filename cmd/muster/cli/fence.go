package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) fenceCommand() *cobra.Command {
	var o api.FenceOptions
	cmd := &cobra.Command{
		Use:   "fence NODE",
		Short: "Stop counting on a node that is lost, and say that it is dead",
		Long: "fence makes nothing new count on a node's agent. Nothing that runs there is released by it.\n\n" +
			"With --confirm-dead you say that the machine is off, or that nothing of Muster's runs on it\n" +
			"any more: allocations there end as Failed (NodeLost), jobs go back to the queue, gangs whole,\n" +
			"after the grace of their members elsewhere. If it is not true, two owners use one device.\n\n" +
			"It is refused while the node's agent is heard, unless forced. There is no unfence: the fence\n" +
			"ends when the agent registers again, which it does by itself when it comes back. What it still\n" +
			"holds then and the store has released, it stops first.",
		Example: "  muster fence gpu-07 --confirm-dead --reason \"its power supply burnt out\"",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := a.named(nodeKind, args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			n, err := a.client.Nodes().Fence(ctx, names[0], o)
			if err != nil {
				return fmt.Errorf("fence node %s: %w", names[0], err)
			}
			if !a.isTable() {
				return a.print([]object{objectOf(api.KindNode, n)}, n)
			}
			if o.ConfirmDead {
				a.printf("node %q fenced and confirmed dead\n", names[0])
			} else {
				a.printf("node %q fenced\n", names[0])
			}
			return nil
		},
		ValidArgsFunction: a.completeNames(nodeKind),
	}
	cmd.Flags().BoolVar(&o.ConfirmDead, "confirm-dead", false, "nothing of Muster's runs there any more: end what has members there")
	cmd.Flags().BoolVar(&o.Force, "force", false, "even though its agent is heard")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why, for the owners to see")
	return cmd
}
