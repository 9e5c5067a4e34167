package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// dryRun is a flag that says how far a change goes: "" or none: it is made;
// client: nothing is sent to a server.
type dryRun string

func (d *dryRun) String() string {
	if *d == "" {
		return "none"
	}
	return string(*d)
}

// Type implements pflag.Value.
func (d *dryRun) Type() string { return "string" }

// Set implements pflag.Value.
func (d *dryRun) Set(text string) error {
	if text != "none" && text != "client" {
		return errors.New("want none or client")
	}
	*d = dryRun(text)
	return nil
}

// client reports whether nothing is to be changed.
func (d *dryRun) client() bool { return *d == "client" }

// showDryRun prints documents as they would be sent, with the word for the
// change.
func (a *app) showDryRun(objects []object, verb string) error {
	if !a.isTable() {
		return a.print(objects, listOf(objects))
	}
	for _, o := range objects {
		a.printf("%s %s (dry run)\n", o, verb)
	}
	return nil
}

// fileFlags are the flags of a verb that reads documents.
func (a *app) fileFlags(cmd *cobra.Command, files *[]string, verb string) {
	cmd.Flags().StringArrayVarP(files, "filename", "f", nil, "file or folder to "+verb+", - for standard input; may be repeated")
	cmd.Flags().BoolVarP(&a.recursive, "recursive", "R", false, "read the folders in folders, too")
}
