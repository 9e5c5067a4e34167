package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func (a *app) snapshotCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "snapshot --file FILE",
		Short: "Export the scheduling state of the cluster for muster simulate",
		Long: "snapshot writes nodes, devices, quotas, queues, running and waiting work and the mix of work that\n" +
			"the leader has learned into a file. muster simulate --snapshot FILE goes on from it and decides as\n" +
			"the cluster would. The file has no commands, environments, annotations, addresses and credentials;\n" +
			"names of namespaces, users and work are in it. It needs the role operator.",
		Example: "  muster snapshot --file cluster.json\n  muster snapshot --file - | gzip > cluster.json.gz",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usagef("--file: not set; it is the file to write, or - for standard output")
			}
			if err := a.connect(); err != nil {
				return err
			}
			return a.snapshot(cmd.Context(), file)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the file to write, or - for standard output")
	return cmd
}

func (a *app) snapshot(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := a.client.Snapshot(ctx)
	if err != nil {
		return err
	}
	if file == "-" {
		a.printf("%s\n", s.Document)
		return nil
	}
	if err := os.WriteFile(file, []byte(s.Document), 0o600); err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	a.printf("%s: revision %d with %d nodes and %d units\n", file, s.Revision, s.Nodes, s.Units)
	if s.Undecided > 0 {
		a.notef("%d units were about to start; in the snapshot they wait\n", s.Undecided)
	}
	return nil
}
