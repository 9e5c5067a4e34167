package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

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

// snapshotTimeout bounds the export of a large cluster.
const snapshotTimeout = 5 * time.Minute

func (a *app) snapshot(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	done := a.newProgress().during("waiting for the snapshot")
	s, err := a.client.Snapshot(ctx)
	done()
	if err != nil {
		return err
	}
	if file == "-" {
		a.printf("%s\n", s.Document)
		return nil
	}
	if err := replaceFile(file, []byte(s.Document)); err != nil {
		return fmt.Errorf("--file %s: %w", file, err)
	}
	a.printf("%s: revision %d with %d nodes and %d units\n", file, s.Revision, s.Nodes, s.Units)
	if s.Undecided > 0 {
		a.notef("%d units were about to start; in the snapshot they wait\n", s.Undecided)
	}
	return nil
}

// replaceFile puts data into the file in one step, for its owner alone: a reader sees the
// old content or the new one, and after an error the old one is still there. What is no
// regular file, such as /dev/stdout, is written to as it is. A symbolic link stays.
func replaceFile(path string, data []byte) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, data, 0o600)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".snapshot-*") // mode 0600
	if err != nil {
		return err
	}
	_, writeErr := temporary.Write(data)
	err = errors.Join(writeErr, temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
