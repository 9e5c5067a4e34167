package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) approveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "approve NODE…",
		Short: "Approve that nodes have more than before",
		Long: "approve lets a node give all that it has registered, where that is more, or other devices, than was approved,\n" +
			"where the coordinators' config has admission.growth: approve. muster describe node says what grew.\n" +
			"What the node registers after you have looked is not approved with it.",
		Example: "  muster node approve gpu-07",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := a.named(nodeKind, args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			var failures []error
			var shown []object
			for _, name := range names {
				n, err := a.approve(ctx, name)
				if err != nil {
					failures = append(failures, fmt.Errorf("approve node %s: %w", name, err))
					continue
				}
				shown = append(shown, objectOf(api.KindNode, n))
			}
			if !a.isTable() && len(shown) > 0 {
				failures = append(failures, a.print(shown, listOf(shown)))
			}
			return errors.Join(failures...)
		},
		ValidArgsFunction: a.completeNames(nodeKind),
	}
}

// approve approves the growth that it reads.
func (a *app) approve(ctx context.Context, name string) (*api.Node, error) {
	n, err := a.client.Nodes().Get(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, c := range n.Status.Conditions {
		if c.Type != "AwaitingApproval" || c.Status != "True" {
			continue
		}
		if n, err = a.client.Nodes().Approve(ctx, name, api.ApproveOptions{ResourceVersion: n.Metadata.ResourceVersion}); err != nil {
			return nil, err
		}
		if a.isTable() {
			a.printf("node %q approved: %s\n", name, c.Message)
		}
		return n, nil
	}
	if a.isTable() {
		a.printf("node %q awaits no approval\n", name)
	}
	return n, nil
}
