package gossip

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// messageType is the first byte of a message of the serf ring
// (serf/messages.go of serf v0.11.0). A body in msgpack follows it.
type messageType uint8

const (
	leaveMessage messageType = iota
	joinMessage
	stateMessage // push/pull
	eventMessage
	queryMessage
	answerMessage
	_ // a conflict's answer: inside an answer
	_ // a key request: inside a query
	_ // a key response: inside an answer
	relayMessage
)

// pingQuery is the internal query of serf that `serf reachability` sends.
const pingQuery = "_serf_ping"

// The bodies have the field names of serf's own types; fields that the guard
// does not judge are left out.
type (
	leaveBody struct {
		LTime uint64
		Node  string
		Prune bool
	}
	joinBody struct {
		LTime uint64
		Node  string
	}
	eventBody struct {
		LTime   uint64
		Name    string
		Payload []byte
	}
	queryBody struct {
		LTime       uint64
		ID          uint32
		Addr        []byte
		Port        uint16
		SourceNode  string
		RelayFactor uint8
		Timeout     time.Duration
		Name        string
	}
	relayHead struct {
		DestAddr net.UDPAddr
		DestName string
	}
	// stateBody is complete: it is written again.
	stateBody struct {
		LTime        uint64
		StatusLTimes map[string]uint64
		LeftMembers  []string
		EventLTime   uint64
		Events       []*stateEvents
		QueryLTime   uint64
	}
	stateEvents struct {
		LTime  uint64
		Events []stateEvent
	}
	stateEvent struct {
		Name    string
		Payload []byte
	}
)

func decode(b []byte, into any) error {
	if err := codec.NewDecoderBytes(b, &codec.MsgpackHandle{}).Decode(into); err != nil {
		return fmt.Errorf("%d bytes that are not its msgpack: %w", len(b), err)
	}
	return nil
}

// decodeHead reads a head and returns the bytes behind it.
func decodeHead(b []byte, into any) (rest []byte, err error) {
	r := bytes.NewReader(b)
	if err := codec.NewDecoder(r, &codec.MsgpackHandle{}).Decode(into); err != nil {
		return nil, fmt.Errorf("%d bytes that are not its msgpack: %w", len(b), err)
	}
	return io.ReadAll(r)
}

func encode(t messageType, body any) ([]byte, error) {
	out := bytes.NewBuffer([]byte{byte(t)})
	err := codec.NewEncoder(out, &codec.MsgpackHandle{}).Encode(body)
	return out.Bytes(), err
}

// fingerprint distinguishes the events of one time.
func fingerprint(name string, payload []byte) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(payload)
	return h.Sum64()
}

const (
	// crowdTimes is how many Lamport times serf remembers messages of.
	crowdTimes = 512
	// crowdSize bounds the messages of one time: honest members that send at
	// once share a time.
	crowdSize = 16
)

// crowd remembers the messages of the latest Lamport times, as serf does, so
// that serf's own memory has a bound.
type crowd [crowdTimes]struct {
	time uint64
	ids  []uint64 // at most crowdSize
}

type crowdAnswer int

const (
	crowdNew crowdAnswer = iota
	crowdSeen
	crowdFull
)

// add notes a message and charges a new one to the budget.
func (c *crowd) add(time, id uint64, b *budget) crowdAnswer {
	at := &c[time%crowdTimes]
	if at.time != time {
		if time < at.time {
			return crowdSeen // older than the events that serf remembers
		}
		at.time, at.ids = time, at.ids[:0]
	}
	for _, have := range at.ids {
		if have == id {
			return crowdSeen
		}
	}
	if len(at.ids) >= crowdSize || !b.take() {
		return crowdFull
	}
	at.ids = append(at.ids, id)
	return crowdNew
}

// budget is a token bucket. Its zero value holds nothing.
type budget struct {
	perSecond, most float64
	left            float64
	at              time.Time
}

// take takes one token, if there is one.
func (b *budget) take() bool {
	now := time.Now()
	if b.at.IsZero() {
		b.left = b.most
	} else {
		b.left = min(b.most, b.left+now.Sub(b.at).Seconds()*b.perSecond)
	}
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
