package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
)

func (a *app) attachCommand() *cobra.Command {
	var lookOn bool
	var member indexValue
	cmd := &cobra.Command{
		Use:   "attach JOB",
		Short: "Connect the terminal with the command of a job that runs",
		Long: "attach shows what the command of a job writes from now on, and ends with its exit code. Where the job has\n" +
			"stdin: true, as with muster run -i, standard input goes to the command; where it has tty: true, as with\n" +
			"-t, all keys do. One session sends the input at a time. The job goes on when the session ends: with ~. at\n" +
			"the beginning of a line of a terminal (~~ is ~), with Ctrl-C where there is none, or with the connection.\n" +
			"It needs the role editor, and each use is in the audit.",
		Example: "  muster attach debug\n  muster attach train --no-stdin",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.connectForJob(args[0]); err != nil {
				return err
			}
			return a.attach(cmd.Context(), args[0], member.index, lookOn)
		},
		ValidArgsFunction: a.completeNames(jobKind),
	}
	cmd.Flags().BoolVar(&lookOn, "no-stdin", false, "send no input: show the output alone")
	cmd.Flags().Var(&member, "member", "attach to the member with this index (default 0)")
	return cmd
}

// attach connects the program with the command of a job, until the end of either.
func (a *app) attach(ctx context.Context, name string, member *int, lookOn bool) error {
	calling, cancel := context.WithTimeout(ctx, callTimeout)
	j, err := a.client.Jobs(a.namespace).Get(calling, name, sdk.GetOptions{})
	cancel()
	if err != nil {
		return fmt.Errorf("attach to job/%s: %w", name, err)
	}
	spec := &j.Spec.Template.Spec
	c := console{input: spec.Stdin && !lookOn}
	if spec.TTY && isTerminal(a.Stdin) {
		if c.screen, err = a.openTerminal(); err != nil {
			return err
		}
	}
	o := sdk.ExecOptions{Attach: true, Input: c.input, Window: c.window()}
	if member != nil {
		o.Member = *member
	}
	session, err := a.client.Jobs(a.namespace).Exec(ctx, name, o)
	if err != nil {
		return fmt.Errorf("attach to job/%s: %w", name, err)
	}
	if !spec.Stdin && !lookOn {
		a.notef("job/%s takes no input: its output alone is shown\n", name)
	}
	exit, err := a.converse(session, &c)
	switch {
	case errors.Is(err, errDetached):
		a.notef("\ndetached; job/%s goes on\n", name) // the prompt of the command has no end
		return nil
	case err != nil && ctx.Err() != nil:
		a.notef("detached; job/%s goes on\n", name)
		return nil
	case err != nil:
		return fmt.Errorf("attach to job/%s: %w", name, err)
	case exit.Message != "":
		a.notef("muster: job/%s: %s\n", name, exit.Message)
	}
	if exit.Code != 0 {
		return exitError{exit.Code}
	}
	return nil
}

// attachRun connects the program with the command of a job of its own, over all its starts,
// until the job has ended. Output of a start that no session has shown comes from the log.
func (a *app) attachRun(ctx context.Context, o object, j *api.Job, c *console) error {
	jobs, wait, refusals := a.client.Jobs(j.Metadata.Namespace), firstPause, 0
	later := false // a start may have come behind the last session
	for {
		now, err := a.poll(ctx, o, 0)
		if err != nil {
			return err
		}
		switch phase, _ := now.state(); {
		case phase.Ended() && c.whole && !later:
			return nil
		case phase.Ended():
			return a.showRest(ctx, jobs, j.Metadata.Name, c)
		case phase == api.Pending || phase == api.Queued: // also for a moment before a job ends
			later = true
			if _, err := a.poll(ctx, o, slice); err != nil {
				return err
			}
			continue
		}
		if tx := a.transactionOf(ctx, as[api.Job](now)); tx != c.tx || c.whole {
			c.tx, c.read = tx, 0
		}
		session, err := jobs.Exec(ctx, j.Metadata.Name, sdk.ExecOptions{Attach: true, From: &c.read, Input: c.input, Window: c.window()})
		if err != nil {
			var status *api.Status
			if refusals++; !errors.As(err, &status) || !passes(status.Code) || ctx.Err() != nil {
				return err
			} else if refusals == tellAfter {
				a.notef("muster: %v; asking again\n", err)
			}
			wait = pauseFor(ctx, wait)
			continue
		}
		wait, refusals, later, c.whole = firstPause, 0, false, false
		exit, err := a.converse(session, c)
		switch {
		case exit != nil:
			c.whole = true
		case errors.Is(err, errDetached), ctx.Err() != nil, c.input && c.screen == nil, isRefusal(err):
			return err
		default:
			a.notef("muster: %v; attaching again\n", err)
		}
	}
}

// transactionOf is the transaction that the first member of a job has; "" where it has none,
// or cannot be asked for.
func (a *app) transactionOf(ctx context.Context, j *api.Job) resource.TxID {
	if len(j.Status.Allocations) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	m, err := a.client.Allocations(j.Metadata.Namespace).Get(ctx, j.Status.Allocations[0].Name, sdk.GetOptions{})
	if err != nil {
		return ""
	}
	return m.Status.Transaction
}

const (
	// firstPause is that between the first two requests for a session, longestPause that
	// between later ones.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
	// tellAfter is the number of refusals in a row of which the person hears.
	tellAfter = 12
)

// pauseFor waits, and returns the next wait.
func pauseFor(ctx context.Context, wait time.Duration) time.Duration {
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
	return min(2*wait, longestPause)
}

// passes reports whether a refusal of a session is one of this moment: the member does not
// run yet, or has just ended; its node or the coordinator is busy or away.
func passes(code int) bool {
	return code == http.StatusConflict || code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable
}

// isRefusal reports whether a session was ended by a refusal that stays.
func isRefusal(err error) bool {
	var status *api.Status
	return errors.As(err, &status) && !passes(status.Code)
}

// showRest shows the output of the last start that no session has shown.
func (a *app) showRest(ctx context.Context, jobs sdk.Jobs, name string, c *console) error {
	to := a.outputOf(c)
	for piece, err := range jobs.Logs(ctx, name, sdk.LogOptions{Follow: true}) {
		if err != nil {
			return fmt.Errorf("logs of job/%s: %w", name, err)
		}
		if piece.Message != "" {
			a.notef("muster: %s\n", piece.Message)
			continue
		}
		data, err := piece.Bytes()
		if err != nil {
			return fmt.Errorf("logs of job/%s: %w", name, err)
		}
		if shown := c.read - piece.Offset; piece.Transaction == c.tx && c.whole {
			continue
		} else if piece.Transaction == c.tx && shown > 0 {
			data = data[min(shown, int64(len(data))):]
		}
		if _, err := to.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// console is the program's part in a session with a command.
type console struct {
	// screen is the person's terminal for a command that has one, else nil.
	screen *ownTerminal
	input  bool // standard input goes to the command
	// stays: the session ends with its command. Otherwise ~. ends the session alone.
	stays bool

	tx    resource.TxID // the start of the last session
	read  int64         // bytes of output that its sessions have shown
	whole bool          // the start has ended, and these are all
}

func (c *console) window() api.ExecWindow {
	if c.screen == nil {
		return api.ExecWindow{}
	}
	return c.screen.size()
}

// errDetached is the end of a session by its person.
var errDetached = errors.New("detached")

// counted counts what is written.
type counted struct {
	to io.Writer
	n  *int64
}

// Write implements io.Writer.
func (c counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	*c.n += int64(n)
	return n, err
}

// escape finds ~. at the beginning of a line, as ssh does. ~~ is ~.
type escape struct{ within, tilde bool }

// pass is the part of a piece of input for the command, and whether the person leaves.
func (e *escape) pass(piece []byte) (rest []byte, leaves bool) {
	for _, b := range piece {
		switch {
		case e.tilde && b == '.':
			return rest, true
		case e.tilde:
			e.tilde, e.within = false, true
			if rest = append(rest, '~'); b == '~' {
				continue
			}
		case !e.within && b == '~':
			e.tilde = true
			continue
		}
		rest = append(rest, b)
		e.within = b != '\r' && b != '\n'
	}
	return rest, false
}
