package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// cordonCommand is cordon or uncordon.
func (a *app) cordonCommand(cordon bool) *cobra.Command {
	verb, short := "uncordon", "Let new work onto nodes again"
	if cordon {
		verb, short = "cordon", "Keep new work off nodes; what runs stays"
	}
	return &cobra.Command{
		Use:   verb + " NODE…",
		Short: short,
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
				changed = append(changed, object{node: n})
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
