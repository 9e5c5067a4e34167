package cli

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// converse connects the program's own streams with a session until its end, or until the
// person leaves it.
func (a *app) converse(session *sdk.ExecSession, c *console) (*api.ExecExit, error) {
	if c.screen != nil {
		if c.input { // without it Ctrl-C is the program's
			if err := c.screen.enter(); err != nil {
				return nil, err
			}
			defer c.screen.leave() // before anything is said
		}
		defer c.screen.follow(session)()
	}
	left := make(chan struct{})
	leave := sync.OnceFunc(func() { close(left); _ = session.Close() })
	if c.input {
		over, fed, typed := make(chan struct{}), make(chan struct{}), a.typed()
		defer func() { close(over); _ = session.Close(); <-fed }()
		go func() {
			defer close(fed)
			typed.feed(session, over, func(piece []byte) []byte {
				if c.screen == nil || c.stays {
					return piece
				}
				rest, leaves := typed.escape.pass(piece)
				if leaves {
					leave()
				}
				return rest
			})
		}()
	}
	exit, err := session.Run(counted{a.outputOf(c), &c.read}, a.Stderr)
	select {
	case <-left:
		return nil, errDetached
	default:
		return exit, err
	}
}

// outputOf is the stream for the output of a command: a person's terminal gets all bytes of
// a command that has a terminal, and else no characters that a terminal obeys.
func (a *app) outputOf(c *console) io.Writer {
	if v, is := a.Stdout.(*visible); is && (c.screen != nil || !isTerminal(v)) {
		return v.raw()
	}
	return a.Stdout
}

// typing is the program's standard input, for sessions one after the other: what is read
// after the end of a session is the next one's.
type typing struct {
	pieces chan []byte
	escape escape
}

// typed begins to read standard input at the first call.
func (a *app) typed() *typing {
	if a.typing == nil {
		a.typing = &typing{pieces: make(chan []byte)}
		go a.typing.read(a.Stdin)
	}
	return a.typing
}

// read reads the input until its end. A program that ends leaves it where it waits.
func (t *typing) read(from io.Reader) {
	defer close(t.pieces)
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			t.pieces <- append([]byte(nil), piece[:n]...)
		}
		if err != nil {
			return
		}
	}
}

// feed hands the input on until its end, or that of the session. pass returns the part of a
// piece that is for the command.
func (t *typing) feed(session *sdk.ExecSession, over <-chan struct{}, pass func([]byte) []byte) {
	for {
		select {
		case piece, more := <-t.pieces:
			if !more {
				_ = session.CloseInput()
				return
			}
			if _, err := session.Write(pass(piece)); err != nil {
				return
			}
		case <-over:
			return
		}
	}
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

// follow tells the command of each new size of the terminal, until stop. It begins with the
// size now: the terminal may have another one since the session was asked for.
func (t *ownTerminal) follow(session *sdk.ExecSession) (stop func()) {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	select {
	case resized <- syscall.SIGWINCH:
	default:
	}
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
