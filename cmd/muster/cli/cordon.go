package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

// cordonCommand is cordon or uncordon.
func (a *app) cordonCommand(cordon bool) *cobra.Command {
	verb, short := "uncordon", "Let new work onto nodes again"
	long := "uncordon lets new work onto nodes again. It also ends the isolation of a node whose agent broke the\n" +
		"protocol, which `muster describe node NODE` shows as the condition ProtocolViolation with its reason.\n" +
		"Look at the host before you let it back."
	if cordon {
		verb, short = "cordon", "Keep new work off nodes; what runs stays"
		long = "cordon keeps new work off nodes until `muster uncordon`; what runs there stays."
	}
	return &cobra.Command{
		Use:   verb + " NODE…",
		Short: short,
		Long:  long,
		Args:  arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := a.named(nodeKind, args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			var failures []error
			var changed []object
			for _, name := range names {
				change := a.client.Nodes().Uncordon
				if cordon {
					change = a.client.Nodes().Cordon
				}
				n, err := change(ctx, name)
				if err != nil {
					failures = append(failures, fmt.Errorf("%s node %s: %w", verb, name, err))
					continue
				}
				changed = append(changed, objectOf(api.KindNode, n))
				if a.isTable() {
					a.printf("node %q %sed\n", name, verb)
				}
			}
			if !a.isTable() && len(changed) > 0 {
				failures = append(failures, a.print(changed, listOf(changed)))
			}
			return errors.Join(failures...)
		},
		ValidArgsFunction: a.completeNames(nodeKind),
	}
}
