// Package manual writes the man pages of a program from its commands. The commands' own
// texts are the source. It decides the form alone; test/manualtest writes the reference
// page in docs/reference.
package manual

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Command is the hidden command docs of a program, with docs man DIR. The package
// of the program calls it when it is installed.
func Command(version string) *cobra.Command {
	docs := &cobra.Command{
		Use: "docs", Short: "Write the manual of this program", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	docs.AddCommand(&cobra.Command{
		Use:   "man DIR",
		Short: "Write a man page of each command into a folder",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return Man(cmd.Root(), version, args[0]) },
	})
	return docs
}

// Man writes a man page of section 1 for each command into a folder, which it makes
// if need be. The pages bear no date, so that equal sources give equal pages.
func Man(root *cobra.Command, version, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	began := time.Unix(0, 0)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Muster " + version, Manual: "Muster manual", Date: &began}, folder)
}
