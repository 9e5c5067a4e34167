package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/pace"
)

// The limits of one node.
var (
	logRate    = pace.Rate{Every: time.Second, Burst: 20}            // lines about it
	answerRate = pace.Rate{Every: 4 * time.Millisecond, Burst: 1024} // Forget, Abort and Resync without an attempt
	fenceRate  = pace.Rate{Every: time.Second, Burst: 64}            // ABORTED records for promises that the node reports
	wakeRate   = pace.Rate{Every: 100 * time.Millisecond, Burst: 20} // wake-ups of waiting units by messages of the node
)

// LoudBreak is how long a node is the last choice after its messages had to wait because
// it says nothing new without end: its vote would wait as well.
const LoudBreak = 5 * time.Second

// longestForeign is the most bytes of an agent's text that a log line, a
// condition or a record of the store takes.
const longestForeign = 512

// Clip is a text of at most longestForeign bytes, cut between characters.
func Clip(text string) string { return clipTo(text, longestForeign) }

func clipTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len("…")
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end] + "…"
}
