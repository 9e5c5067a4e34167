package grant

import (
	"errors"

	"github.com/musterd/muster/resource"
)

// Exec is a session in a member whose work runs: a further command, with the user, the
// limits and the environment of the work, or with Attach the member's own command.
type Exec struct {
	Tx              resource.TxID
	Member, Restart int
	// Attach: the session is with the member's own command, which outlives the session. It
	// has neither Args nor TTY nor Term.
	Attach bool
	// From, with Attach, is the offset in the output at which the session begins, or the
	// next one that is kept; nil is the end of the present output.
	From *int64
	// Args are the command and its arguments: at least one.
	Args []string
	// TTY: the command has a terminal of the size Window and of the kind Term.
	TTY    bool
	Window Window
	Term   string
	// Input: the person sends the standard input; otherwise there is none.
	Input bool
}

// Bounds of an Exec.
const (
	MaxExecArgs  = 1024
	MaxExecBytes = 16 << 10 // of all arguments
	MaxTerm      = 64       // bytes
	// MaxExecPiece bounds a piece of input and of output, in bytes.
	MaxExecPiece = 32 << 10
	// ExecWindow bounds the bytes of input that no ExecOutput.Taken has confirmed. Who sends
	// more loses the session.
	ExecWindow = 64 << 10
	// MaxSignal is the greatest number of a signal.
	MaxSignal = 64
)

// Window is the size of a terminal, in characters; the zero value is not known.
type Window struct{ Rows, Columns uint16 }

// ExecInput is a message to the command: one of its fields is set.
type ExecInput struct {
	Data []byte
	End  bool // of the input
	// Window is the new size of the person's terminal.
	Window Window
	// Signal is the number of a signal to the process group of the command.
	Signal int
}

// ExecOutput is a message from the command: one of Data, Taken and Exit is set.
type ExecOutput struct {
	Data []byte
	// Error: Data is of the standard error. A terminal has the standard output alone.
	Error bool
	// Taken is the bytes of input that the command has taken since the last such message.
	Taken int
	// Exit is the end of the command, and the last message.
	Exit *ExecExit
}

// ExecExit is how a command has ended.
type ExecExit struct {
	Code   int // 0 to 255; 128 + Signal for a signal
	Signal int
	// Reason is Completed, Stopped or NotStarted.
	Reason  string
	Message string
}

// ExecSession is a command that runs. Send and Receive are each of one goroutine at a time.
type ExecSession interface {
	// Send hands input on. It waits for nobody but the connection.
	Send(ExecInput) error
	// Receive waits for the next message. An error before Exit means that the session is
	// lost, and that a further command ends.
	Receive() (ExecOutput, error)
	// Close ends the session, and a further command that has not ended. It may be called at
	// any time.
	Close()
}

// Why a host opens no session.
var (
	// ErrNotRunning is wrapped where the member's command does not run.
	ErrNotRunning = errors.New("the command of the member does not run")
	// ErrManySessions is wrapped where the member, or its host, has as many as it may have.
	ErrManySessions = errors.New("too many sessions")
	// ErrNoExec is wrapped where the host cannot run further commands.
	ErrNoExec = errors.New("the host runs no further commands in members")
	// ErrInputHeld is wrapped where another session sends the input of the member's own
	// command.
	ErrInputHeld = errors.New("another session has the standard input")
	// ErrNoInput is wrapped where the member's own command takes no input, or no more.
	ErrNoInput = errors.New("no standard input")
)
