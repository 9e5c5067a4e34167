package api

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/musterd/muster/resource"
)

// MaxFollowedMembers is the number of members whose output one request follows at most.
const MaxFollowedMembers = 256

// LogChunk is a piece of the output of one member of a job. The pieces of one start of a
// member come in order; those of different members come as they are written.
type LogChunk struct {
	// Member is the index of the member in its job.
	Member int32 `json:"member" range:"0.." example:"3"`
	// Node is the name of the node that the member ran on.
	Node string `json:"node,omitempty" example:"gpu-17"`
	// Transaction is the transaction that the member ran in: a member that was started
	// anew has another one.
	Transaction resource.TxID `json:"transaction,omitempty" example:"job-00000000000000a1-0.1"`
	// Offset is the place of the piece in the output of the start. A gap before the
	// piece is output that is kept no more.
	Offset int64 `json:"offset" range:"0.." unit:"bytes" example:"4096"`
	// Text is the piece.
	Text string `json:"text,omitempty" example:"step 100: loss 0.42\n"`
	// Data is the piece in base64, in place of text, where the piece is not UTF-8.
	Data string `json:"data,omitempty" example:"/wD/AA=="`
	// Message says why output is missing. Such a piece has no text.
	Message string `json:"message,omitempty" example:"the output on node gpu-17 is kept no more: it goes 24 h after the end"`
}

// SetBytes makes a piece of output.
func (c *LogChunk) SetBytes(piece []byte) {
	if utf8.Valid(piece) {
		c.Text = string(piece)
	} else {
		c.Data = base64.StdEncoding.EncodeToString(piece)
	}
}

// Bytes is the piece as the member has written it. The error says that data is no
// base64, which no server sends.
func (c *LogChunk) Bytes() ([]byte, error) {
	if c.Data != "" {
		return base64.StdEncoding.DecodeString(c.Data)
	}
	return []byte(c.Text), nil
}
