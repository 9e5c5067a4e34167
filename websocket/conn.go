// Package websocket has messages in both directions on one connection of HTTP/1.1: the
// part of RFC 6455 that a server and a client of ours need. Messages are binary; there are
// no extensions. It decides neither who may open a connection nor what messages mean.
package websocket

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// The opcodes of frames (RFC 6455, section 5.2).
const (
	opContinue = 0x0
	opText     = 0x1
	opBinary   = 0x2
	opClose    = 0x8
	opPing     = 0x9
	opPong     = 0xa

	bitFin    = 0x80
	bitMasked = 0x80
	// mostControl bounds the payload of a control frame, in bytes.
	mostControl = 125
)

// The codes of an end (RFC 6455, section 7.4.1).
const (
	Normal   = 1000
	Protocol = 1002
	TooLarge = 1009
)

// ErrClosed is returned where the other side has ended the messages by itself.
var ErrClosed = errors.New("the other side has closed the connection")

// ProtocolError is a message that no peer may send.
type ProtocolError struct {
	Code int // of the end
	Text string
}

func (e *ProtocolError) Error() string { return e.Text }

func violation(code int, format string, args ...any) error {
	return &ProtocolError{code, fmt.Sprintf(format, args...)}
}

// Conn is one connection. One goroutine reads; any may write.
type Conn struct {
	from *bufio.Reader
	to   io.WriteCloser
	// client: this side masks its frames, and the other side does not.
	client bool
	// most bounds a message that is read, in bytes.
	most int
	// Seen, where not nil, is called at each frame that arrives.
	Seen func()

	writing sync.Mutex // of one frame
	ended   bool       // the end is sent; writing guards it
}

// New returns a connection whose handshake is done: from reads from what to writes to. It
// reads messages of at most so many bytes.
func New(from *bufio.Reader, to io.WriteCloser, client bool, most int) *Conn {
	return &Conn{from: from, to: to, client: client, most: most}
}

// frame is the head of a frame.
type frame struct {
	fin    bool
	opcode byte
	mask   [4]byte
	masked bool
	size   int
}

// Read waits for a message. After an error there is none: ErrClosed, a *ProtocolError, or
// that of the connection. The caller ends a connection whose peer has broken a rule.
func (c *Conn) Read() ([]byte, error) {
	var message []byte
	begun := false
	for {
		f, err := c.head(len(message))
		if err != nil {
			return nil, err
		}
		switch {
		case f.opcode >= opClose:
		case f.opcode == opText:
			return nil, violation(Protocol, "a text: want binary messages")
		case f.opcode == opContinue && !begun, f.opcode == opBinary && begun:
			return nil, violation(Protocol, "opcode %d is out of order", f.opcode)
		}
		payload, err := c.payload(f)
		if err != nil {
			return nil, err
		}
		switch f.opcode {
		case opPing:
			if err := c.send(opPong, payload); err != nil {
				return nil, err
			}
		case opPong:
		case opClose:
			_ = c.End(Normal)
			return nil, ErrClosed
		default:
			message, begun = append(message, payload...), true
			if f.fin {
				return message, nil
			}
		}
	}
}

// head reads the head of a frame; the message has so many bytes before.
func (c *Conn) head(before int) (f frame, err error) {
	var b [8]byte
	if _, err := io.ReadFull(c.from, b[:2]); err != nil {
		return f, err
	}
	if c.Seen != nil {
		c.Seen()
	}
	f = frame{fin: b[0]&bitFin != 0, opcode: b[0] & 0x0f, masked: b[1]&bitMasked != 0}
	size := uint64(b[1] &^ bitMasked)
	switch {
	case b[0]&0x70 != 0:
		return f, violation(Protocol, "bits of an extension: there is none")
	case f.opcode > opPong, f.opcode > opBinary && f.opcode < opClose:
		return f, violation(Protocol, "opcode %d is not known", f.opcode)
	case f.masked == c.client:
		return f, violation(Protocol, "masked is %t: want it of a client alone", f.masked)
	case f.opcode >= opClose && (!f.fin || size > mostControl):
		return f, violation(Protocol, "a control frame of %d bytes, whole: %t: want at most %d, in one frame", size, f.fin, mostControl)
	}
	switch n := map[uint64]int{126: 2, 127: 8}[size]; n {
	case 2, 8:
		if _, err := io.ReadFull(c.from, b[8-n:]); err != nil {
			return f, unexpected(err)
		}
		clear(b[:8-n])
		size = binary.BigEndian.Uint64(b[:])
	}
	if f.opcode < opClose && size > uint64(c.most-before) {
		return f, violation(TooLarge, "a message of more than %d bytes", c.most)
	}
	f.size = int(size)
	if f.masked {
		if _, err := io.ReadFull(c.from, f.mask[:]); err != nil {
			return f, unexpected(err)
		}
	}
	return f, nil
}

func (c *Conn) payload(f frame) ([]byte, error) {
	p := make([]byte, f.size)
	if _, err := io.ReadFull(c.from, p); err != nil {
		return nil, unexpected(err)
	}
	if f.masked {
		mask(p, f.mask)
	}
	return p, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func mask(p []byte, key [4]byte) {
	for i := range p {
		p[i] ^= key[i&3]
	}
}

// Write sends a message, made of several parts.
func (c *Conn) Write(parts ...[]byte) error { return c.send(opBinary, parts...) }

// Ping asks the other side for a sign of life.
func (c *Conn) Ping() error { return c.send(opPing) }

// End tells the other side that no message follows, once.
func (c *Conn) End(code int) error {
	return c.send(opClose, binary.BigEndian.AppendUint16(nil, uint16(code)))
}

// Close closes the connection, which ends a Read and a Write that wait.
func (c *Conn) Close() error { return c.to.Close() }

// send writes a frame with one call of Write.
func (c *Conn) send(opcode byte, parts ...[]byte) error {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	text := make([]byte, 0, size+14)
	text = append(text, bitFin|opcode)
	masked := byte(0)
	if c.client {
		masked = bitMasked
	}
	switch {
	case size < 126:
		text = append(text, masked|byte(size))
	case size < 1<<16:
		text = binary.BigEndian.AppendUint16(append(text, masked|126), uint16(size))
	default:
		text = binary.BigEndian.AppendUint64(append(text, masked|127), uint64(size))
	}
	var key [4]byte
	if c.client {
		if _, err := rand.Read(key[:]); err != nil {
			return err
		}
		text = append(text, key[:]...)
	}
	head := len(text)
	for _, p := range parts {
		text = append(text, p...)
	}
	if c.client {
		mask(text[head:], key)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return ErrClosed
	}
	c.ended = opcode == opClose
	_, err := c.to.Write(text)
	return err
}
