package shim

import (
	"encoding/binary"
	"fmt"
	"io"
)

// This file is the form of a session on the socket of a shim: frames in both directions,
// after the line of the request and the line of its answer. A frame is a byte for its kind,
// the length of its payload in four bytes (big endian), and the payload.

// FrameKind is the kind of a frame.
type FrameKind byte

// The kinds of frames. Input is from the person to the command, output the other way.
const (
	// FrameInput is a piece of the standard input.
	FrameInput FrameKind = 'i'
	// FrameInputEnd is the end of the standard input, without payload.
	FrameInputEnd FrameKind = 'e'
	// FrameResize is the size of the person's terminal: rows and columns, two bytes each.
	FrameResize FrameKind = 'w'
	// FrameSignal is the number of a signal to the session of the command, one byte.
	FrameSignal FrameKind = 's'

	// FrameOutput and FrameError are pieces of the standard output and of the standard
	// error. A terminal has the first alone.
	FrameOutput FrameKind = 'o'
	FrameError  FrameKind = 'r'
	// FrameTaken says how many bytes of input the command has taken since the last such
	// frame, in four bytes.
	FrameTaken FrameKind = 't'
	// FrameExit is an Exit as JSON. It is the last frame.
	FrameExit FrameKind = 'x'
)

const (
	// MaxFrame bounds a payload, in bytes.
	MaxFrame = 32 << 10
	// InputWindow bounds the bytes of input that no FrameTaken has confirmed yet. A person
	// who sends more loses the session: so the shim always reads its socket, and notices
	// the end of the person at once.
	InputWindow = 64 << 10

	frameHead = 5
)

// Frame is one frame.
type Frame struct {
	Kind    FrameKind
	Payload []byte
}

// WriteFrame writes a frame with one call of Write.
func WriteFrame(w io.Writer, kind FrameKind, payload []byte) error {
	if len(payload) > MaxFrame {
		return fmt.Errorf("frame %c: %d bytes, want at most %d", kind, len(payload), MaxFrame)
	}
	text := make([]byte, frameHead, frameHead+len(payload))
	text[0] = byte(kind)
	binary.BigEndian.PutUint32(text[1:], uint32(len(payload)))
	_, err := w.Write(append(text, payload...))
	return err
}

// ReadFrame reads a frame. The payload is new memory. The error is io.EOF at the end,
// between two frames.
func ReadFrame(r io.Reader) (Frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > MaxFrame {
		return Frame{}, fmt.Errorf("frame %q: %d bytes, want at most %d", head[0], n, MaxFrame)
	}
	f := Frame{Kind: FrameKind(head[0]), Payload: make([]byte, n)}
	if _, err := io.ReadFull(r, f.Payload); err != nil {
		return Frame{}, fmt.Errorf("frame %q: %w", head[0], io.ErrUnexpectedEOF)
	}
	return f, nil
}

// Window is the size of a terminal, in characters. The zero value is not known.
type Window struct {
	Rows    uint16 `json:"rows,omitempty"`
	Columns uint16 `json:"columns,omitempty"`
}

// Payload is the payload of a FrameResize.
func (w Window) Payload() []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, w.Rows), w.Columns)
}

// parseWindow reads the payload of a FrameResize.
func parseWindow(payload []byte) (Window, error) {
	if len(payload) != 4 {
		return Window{}, fmt.Errorf("resize: %d bytes, want 4", len(payload))
	}
	return Window{binary.BigEndian.Uint16(payload), binary.BigEndian.Uint16(payload[2:])}, nil
}

// parseSignal reads the payload of a FrameSignal.
func parseSignal(payload []byte) (int, error) {
	if len(payload) != 1 || payload[0] < 1 || payload[0] > 64 {
		return 0, fmt.Errorf("signal: %v, want one byte, 1..64", payload[:min(len(payload), 4)])
	}
	return int(payload[0]), nil
}

// ParseTaken reads the payload of a FrameTaken.
func ParseTaken(payload []byte) (int, error) {
	if len(payload) != 4 {
		return 0, fmt.Errorf("taken: %d bytes, want 4", len(payload))
	}
	n := binary.BigEndian.Uint32(payload)
	if n > InputWindow {
		return 0, fmt.Errorf("taken: %d bytes, want at most %d", n, InputWindow)
	}
	return int(n), nil
}
