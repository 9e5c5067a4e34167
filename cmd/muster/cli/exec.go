package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/sdk"
)

func (a *app) execCommand() *cobra.Command {
	var input, tty bool
	var member indexValue
	cmd := &cobra.Command{
		Use:   "exec JOB [flags] -- COMMAND…",
		Short: "Run a command beside that of a job, on the same devices",
		Long: "exec runs a further command in a member of a job that runs: on the node of the member, as the same user,\n" +
			"with the same CPUs, limits and environment. It ends with the exit code of the command: 127 for a command\n" +
			"that is not found, 126 for one that cannot be started. The command ends with its session: when muster\n" +
			"ends, when the member ends, and when the token is revoked. It needs the role editor, and each use is in\n" +
			"the audit.\n\n" +
			"With -i the command gets standard input, and with -t a terminal. Without -t Ctrl-C sends SIGINT to the\n" +
			"command; a second Ctrl-C ends the session.",
		Example: "  muster exec train -- nvidia-smi\n  muster exec -it train --member 3 -- bash\n  muster exec -i train -- sh -c 'cat > hosts' < hosts",
		Args:    arguments(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := sdk.ExecOptions{Command: args[1:], TTY: tty, Input: input}
			if member.index != nil {
				o.Member = *member.index
			}
			if err := a.connectForJob(args[0]); err != nil {
				return err
			}
			return a.exec(cmd.Context(), args[0], o)
		},
		ValidArgsFunction: a.completeNames(jobKind),
	}
	flags := cmd.Flags()
	flags.SetInterspersed(true)
	flags.BoolVarP(&input, "stdin", "i", false, "pass standard input to the command")
	flags.BoolVarP(&tty, "tty", "t", false, "give the command a terminal")
	flags.Var(&member, "member", "run the command in the member with this index (default 0)")
	return cmd
}

// exec runs a further command until its end. The end of interrupted, which is Ctrl-C, is
// passed on.
func (a *app) exec(interrupted context.Context, job string, o sdk.ExecOptions) error {
	var screen *ownTerminal
	if o.TTY {
		var err error
		if screen, err = a.openTerminal(); err != nil {
			return err
		}
		o.Window, o.Term = screen.size(), a.Env("TERM")
	}
	ctx, end := context.WithCancel(context.WithoutCancel(interrupted))
	defer end()
	defer context.AfterFunc(interrupted, func() { // while the session is being opened, too
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(again)
		select {
		case <-again:
			end()
		case <-ctx.Done():
		}
	})()
	session, err := a.client.Jobs(a.namespace).Exec(ctx, job, o)
	if err != nil {
		return fmt.Errorf("exec in job/%s: %w", job, err)
	}
	defer session.Close()
	defer context.AfterFunc(interrupted, func() { _ = session.Signal(int(syscall.SIGINT)) })()
	exit, err := a.converse(session, &console{screen: screen, input: o.Input, stays: true})
	switch {
	case err != nil:
		return fmt.Errorf("exec in job/%s: %w", job, err)
	case exit.Message != "":
		a.notef("muster: exec in job/%s: %s\n", job, exit.Message)
	}
	if exit.Code != 0 {
		return exitError{exit.Code}
	}
	return nil
}
