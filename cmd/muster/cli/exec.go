package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/musterd/muster/api"
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
			if a.allNamespaces {
				return usagef("-A: a job is in one namespace")
			}
			if err := jobKind.checkName(args[0]); err != nil {
				return usagef("%v", err)
			}
			o := sdk.ExecOptions{Command: args[1:], TTY: tty, Input: input}
			if member.index != nil {
				o.Member = *member.index
			}
			if err := a.connect(); err != nil {
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
	stdout, stderr := a.Stdout, a.Stderr
	if v, is := a.Stdout.(*visible); is && (o.TTY || !isTerminal(v)) {
		stdout = v.raw()
	}
	if screen != nil {
		if err := screen.enter(); err != nil {
			return err
		}
		defer screen.leave()
		defer screen.follow(session)()
	}
	if o.Input {
		go func() {
			if _, err := io.Copy(session, a.Stdin); err == nil {
				_ = session.CloseInput()
			}
		}()
	}
	exit, err := session.Run(stdout, stderr)
	if screen != nil {
		screen.leave() // before anything is said
	}
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

// ownTerminal is the terminal of the person, for a command that has one too.
type ownTerminal struct {
	fd     int
	before *unix.Termios // nil outside of enter and leave
}

// openTerminal is the terminal of standard input.
func (a *app) openTerminal() (*ownTerminal, error) {
	f, is := a.Stdin.(*os.File)
	if !is || !isTerminal(f) {
		return nil, usagef("-t: standard input is not a terminal: leave -t out")
	}
	return &ownTerminal{fd: int(f.Fd())}, nil
}

// size is the size of the terminal, the zero value where it is not known.
func (t *ownTerminal) size() api.ExecWindow {
	w, err := unix.IoctlGetWinsize(t.fd, unix.TIOCGWINSZ)
	if err != nil {
		return api.ExecWindow{}
	}
	return api.ExecWindow{Rows: w.Row, Columns: w.Col}
}

// enter has the terminal hand each key on as it is (cfmakeraw of termios(3)).
func (t *ownTerminal) enter() error {
	before, err := unix.IoctlGetTermios(t.fd, unix.TCGETS)
	if err != nil {
		return os.NewSyscallError("tcgetattr", err)
	}
	raw := *before
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(t.fd, unix.TCSETS, &raw); err != nil {
		return os.NewSyscallError("tcsetattr", err)
	}
	t.before = before
	return nil
}

// leave has the terminal as it was before enter. It may be called again.
func (t *ownTerminal) leave() {
	if t.before != nil {
		_ = unix.IoctlSetTermios(t.fd, unix.TCSETS, t.before)
		t.before = nil
	}
}

// follow tells the command of each new size of the terminal, until stop.
func (t *ownTerminal) follow(session *sdk.ExecSession) (stop func()) {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-resized:
				if w := t.size(); w != (api.ExecWindow{}) {
					_ = session.Resize(w)
				}
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(resized)
		close(over)
	}
}
