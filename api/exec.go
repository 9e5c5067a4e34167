package api

// ExecProtocol is the subprotocol of WebSocket by which further commands run in members of
// jobs. Each message is binary: a byte for the channel, and the rest. The numbers of the
// channels are those of Kubernetes as far as Kubernetes has them.
const ExecProtocol = "v1.exec.muster.dev"

// The channels of ExecProtocol.
const (
	ExecInput  byte = 0 // to the command: standard input
	ExecOutput byte = 1 // from the command: standard output
	ExecError  byte = 2 // from the command: standard error
	// ExecEnd is the last message: an ExecExit, or a Status where the session is lost.
	ExecEnd byte = 3
	// ExecResize: to the command: an ExecWindow.
	ExecResize byte = 4
	// ExecSignal: to the command: the number of a signal, in decimal.
	ExecSignal byte = 5
	// ExecTaken: from the command: the bytes of input that it has taken since the last such
	// message, in decimal. The bytes under way may be 65,536 at most.
	ExecTaken byte = 6
	// ExecInputEnd: to the command: the end of the standard input. The message has the number
	// of the input's channel.
	ExecInputEnd byte = 255
)

// ExecWindow is the size of a terminal, in characters.
type ExecWindow struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// ExecExit is how a further command has ended.
type ExecExit struct {
	Kind string `json:"kind"` // KindExecExit
	// Code is the exit code: 128 + signal where a signal ended the command, 127 for a command
	// that was not found, 126 for one that could not be started.
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"`
	// Reason is Completed, Stopped or NotStarted.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// KindExecExit is the kind of an ExecExit.
const KindExecExit = "ExecExit"
