package grant

import (
	"errors"

	"github.com/musterd/muster/resource"
)

// LogQuery names the output of one start of a member.
type LogQuery struct {
	Tx              resource.TxID
	Member, Restart int
	// From is the offset of the first byte that is wanted.
	From int64
	// Follow: the answer ends with the work, and waits for the start. Otherwise the
	// answer ends with the output that there is.
	Follow bool
}

// MaxLogPiece is the most bytes of output in one piece.
const MaxLogPiece = 32 << 10

// ErrNoLog is wrapped where a host has no output of a start.
var ErrNoLog = errors.New("the host has no output of this start")
