package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/sdk"
)

func (a *app) logsCommand() *cobra.Command {
	var follow bool
	var member indexValue
	cmd := &cobra.Command{
		Use:   "logs JOB",
		Short: "Show the output of a job's commands",
		Long: "logs shows what the commands of a job's members have written to standard output and standard error.\n" +
			"Where more members than one have output, each line begins with the index of its member. The hosts\n" +
			"keep the last 64 MiB of a member, for 24 hours after its end. A job that was started anew shows the\n" +
			"last start; with -f every start from now on. It needs the role editor, and each use is in the audit.",
		Example: "  muster logs train\n  muster logs -f train --member 0",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.connectForJob(args[0]); err != nil {
				return err
			}
			printer, err := a.printerOf(cmd.Context(), args[0], member.index)
			if err != nil {
				return err
			}
			return a.showLogs(cmd.Context(), args[0], sdk.LogOptions{Member: member.index, Follow: follow}, printer)
		},
		ValidArgsFunction: a.completeNames(jobKind),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "then show more output as it comes, until the job ends")
	cmd.Flags().Var(&member, "member", "show the output of the member with this index alone")
	return cmd
}

// connectForJob checks that a command is about one job of a possible name, and connects.
func (a *app) connectForJob(name string) error {
	if a.allNamespaces {
		return usagef("-A: a job is in one namespace")
	}
	if err := jobKind.checkName(name); err != nil {
		return usagef("%v", err)
	}
	return a.connect()
}

// printerOf is a printer for the output of a job, or of one member.
func (a *app) printerOf(ctx context.Context, name string, member *int) (*logPrinter, error) {
	if member != nil {
		return a.newLogPrinter(1), nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	j, err := a.client.Jobs(a.namespace).Get(ctx, name, sdk.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("logs of job/%s: %w", name, err)
	}
	return a.newLogPrinter(j.Members()), nil
}

// showLogs prints output until its end, or until it is interrupted.
func (a *app) showLogs(ctx context.Context, name string, o sdk.LogOptions, p *logPrinter) error {
	defer p.flush()
	for piece, err := range a.client.Jobs(a.namespace).Logs(ctx, name, o) {
		switch {
		case err != nil && ctx.Err() != nil && o.Follow:
			return nil // interrupted, which is how following ends
		case err != nil:
			return fmt.Errorf("logs of job/%s: %w", name, err)
		}
		if err := p.print(&piece); err != nil {
			return err
		}
		if _, broken := unwritten(a.Stdout); broken {
			return nil
		}
	}
	return nil
}
