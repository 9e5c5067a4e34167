package cli

import "github.com/spf13/cobra"

// nodeCommand holds the verbs that are about nodes alone.
func (a *app) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Decide which hosts take part, and with how much",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.approveCommand())
	return cmd
}
