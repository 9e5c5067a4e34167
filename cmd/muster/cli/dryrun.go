package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

// dryRun is a flag that says how far a change goes: "" or none: the change is
// made; client: nothing is sent to a server; server, where the verb has it: the
// server answers with the outcome, and stores nothing.
type dryRun struct {
	mode      string
	hasServer bool // the verb has the mode server
}

func (d *dryRun) String() string { return cmp.Or(d.mode, "none") }

// Type implements pflag.Value.
func (d *dryRun) Type() string { return "string" }

// Set implements pflag.Value.
func (d *dryRun) Set(text string) error {
	switch {
	case text == "none", text == "client", text == "server" && d.hasServer:
		d.mode = text
		return nil
	case d.hasServer:
		return errors.New("want none, client or server")
	}
	return errors.New("want none or client")
}

// client reports whether nothing is to be changed.
func (d *dryRun) client() bool { return d.mode == "client" }

// server reports whether the server is asked for the outcome.
func (d *dryRun) server() bool { return d.mode == "server" }

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

// tryAll asks the server for the outcome of each document by itself, and shows
// the answers. A document that would wait is no failure; a document that would be refused
// is.
func (a *app) tryAll(ctx context.Context, objects []object) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, o := range objects {
		if o.kind() != jobKind && o.kind() != allocationKind {
			return usagef("--dry-run=server: %s: only allocations and jobs can be tried; --dry-run=client checks the document", o)
		}
	}
	for i, o := range objects {
		e, err := a.try(ctx, o)
		if err != nil {
			return fmt.Errorf("try %s: %w", o, err)
		}
		switch {
		case !a.isTable():
			err = a.encode(e)
		case i > 0:
			a.printf("\n")
			fallthrough
		default:
			a.explanation(o.kind(), e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) try(ctx context.Context, o object) (*api.Explanation, error) {
	o.meta().ResourceVersion = ""
	if job, isJob := o.Value.(*api.Job); isJob {
		return a.client.Jobs(o.meta().Namespace).Try(ctx, job)
	}
	return a.client.Allocations(o.meta().Namespace).Try(ctx, o.Value.(*api.Allocation))
}

// fileFlags are the flags of a verb that reads documents.
func (a *app) fileFlags(cmd *cobra.Command, files *[]string, verb string) {
	cmd.Flags().StringArrayVarP(files, "filename", "f", nil, "file or folder to "+verb+", - for standard input; may be repeated")
	cmd.Flags().BoolVarP(&a.recursive, "recursive", "R", false, "read the folders in folders, too")
}

// nameFlags adds the flag of verbs that change quotas.
func (a *app) nameFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.allowUnknown, "allow-unknown-resources", false, "keep names of resources in quotas and trees that are one edit away from a known name")
}
