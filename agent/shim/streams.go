package shim

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// streams are the person's ends of the standard streams of a command.
type streams struct {
	in       *os.File // nil for a command without input
	terminal *os.File // nil for a command without a terminal; else it is in, and out
	out      []*outlet
	command  ends
}

// ends are the command's ends of its standard streams.
type ends struct {
	files []*os.File // 0, 1 and 2
	all   []*os.File // to close
}

func (e *ends) close() { closeAll(e.all) }

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // a second time where the person is gone
	}
}

func (s *streams) close() {
	if s.in != nil {
		_ = s.in.Close()
	}
	for _, o := range s.out {
		_ = o.from.Close()
	}
}

// openStreams opens the streams that a command asks for.
func openStreams(e Exec, u *User) (*streams, error) {
	if e.TTY {
		person, command, err := openTerminal(u, e.Window)
		if err != nil {
			return nil, err
		}
		return &streams{
			in: person, terminal: person, out: []*outlet{{FrameOutput, person}},
			command: ends{[]*os.File{command, command, command}, []*os.File{command}},
		}, nil
	}
	s := &streams{}
	fail := func(err error) (*streams, error) {
		s.close()
		s.command.close()
		return nil, err
	}
	in, person, err := openInput(e.Input)
	if err != nil {
		return fail(err)
	}
	s.in = person
	s.command = ends{[]*os.File{in}, []*os.File{in}}
	for _, kind := range []FrameKind{FrameOutput, FrameError} {
		reader, writer, err := os.Pipe()
		if err != nil {
			return fail(err)
		}
		s.out = append(s.out, &outlet{kind, reader})
		s.command.files, s.command.all = append(s.command.files, writer), append(s.command.all, writer)
	}
	return s, nil
}

// nullStreams are those of a command whose terminal is not there yet.
func nullStreams() (*streams, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &streams{command: ends{[]*os.File{null, null, null}, []*os.File{null}}}, nil
}

// setTerminal gives streams the person's end of a terminal.
func (s *streams) setTerminal(person *os.File) {
	s.in, s.terminal, s.out = person, person, []*outlet{{FrameOutput, person}}
}

// openInput opens the standard input of a command, and the person's end of it; without a
// person's input that is nil.
func openInput(wanted bool) (command, person *os.File, err error) {
	if wanted {
		return os.Pipe()
	}
	command, err = os.Open(os.DevNull)
	return command, nil, err
}

// outlet is a stream from the command to the person.
type outlet struct {
	kind FrameKind
	from *os.File
}

// wake ends a read that waits.
func (o *outlet) wake() { _ = o.from.SetReadDeadline(time.Now()) }

// copy hands on what comes until the end of the stream. Once the command has exited, copy
// ends with the last byte that is there: something that the command has left behind may
// have the stream open for ever.
func (o *outlet) copy(to *frameWriter, exited <-chan struct{}) {
	piece := make([]byte, MaxFrame)
	for {
		n, err := o.from.Read(piece)
		if n > 0 && to.write(o.kind, piece[:n]) != nil {
			_, _ = io.Copy(io.Discard, o.from) // until its person's end closes it
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			<-exited
			o.drain(to, piece)
			return
		}
		if err != nil { // of a terminal EIO: the command has closed its end
			return
		}
	}
}

// drain hands on what can be read without waiting.
func (o *outlet) drain(to *frameWriter, piece []byte) {
	if o.from.SetReadDeadline(time.Time{}) != nil {
		return
	}
	raw, err := o.from.SyscallConn()
	for err == nil {
		var n int
		var failed error
		err = raw.Read(func(fd uintptr) bool {
			n, failed = unix.Read(int(fd), piece)
			return true
		})
		if failed != nil || n <= 0 || to.write(o.kind, piece[:n]) != nil {
			return
		}
	}
}

// input hands a person's input to a command. One goroutine reads the frames and never
// waits for the command; another writes what has come.
//
// Invariant: len(waiting) + being written <= InputWindow.
type input struct {
	to  *os.File // nil where the command takes none
	tty bool
	ack *frameWriter

	written chan struct{} // closed once nothing is written any more

	mu      sync.Mutex
	more    *sync.Cond
	waiting []byte
	unacked int
	end     bool // of the input
	closed  bool // the session is over
	ended   bool // the command has got the end
}

func newInput(to *os.File, tty bool, ack *frameWriter) *input {
	in := &input{to: to, tty: tty, ack: ack, written: make(chan struct{})}
	in.more = sync.NewCond(&in.mu)
	if to != nil {
		go func() { defer close(in.written); in.write() }()
	} else {
		close(in.written)
	}
	return in
}

// read takes frames until the person goes away, or sends what nobody may send.
func (in *input) read(from io.Reader, std *streams, signal func(syscall.Signal)) {
	for {
		f, err := ReadFrame(from)
		if err != nil {
			return
		}
		switch f.Kind {
		case FrameInput:
			if !in.take(f.Payload) {
				return
			}
		case FrameInputEnd:
			in.finish()
		case FrameResize:
			size, err := parseWindow(f.Payload)
			if err != nil {
				return
			}
			if std.terminal != nil {
				_ = resize(std.terminal, size) // it may have been closed
			}
		case FrameSignal:
			n, err := parseSignal(f.Payload)
			if err != nil {
				return
			}
			signal(syscall.Signal(n))
		default:
			return
		}
	}
}

// take adds a piece; false where the person sends more than the window, or input that
// nobody has asked for.
func (in *input) take(data []byte) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.to == nil || in.end || in.unacked+len(data) > InputWindow {
		return false
	}
	in.unacked += len(data)
	in.waiting = append(in.waiting, data...)
	in.more.Signal()
	return true
}

func (in *input) finish() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.end = true
	in.more.Signal()
}

func (in *input) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.more.Signal()
}

// detach ends the session's part in an input that goes on: input that the command has not
// taken is lost. It reports whether the command has got the end of the input.
func (in *input) detach() (ended bool) {
	in.close()
	if in.to != nil {
		_ = in.to.SetWriteDeadline(time.Now()) // wakes a write that waits for the command
		<-in.written
		_ = in.to.SetWriteDeadline(time.Time{})
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ended
}

// write hands the input on until its end.
func (in *input) write() {
	broken := false
	for {
		in.mu.Lock()
		for len(in.waiting) == 0 && !in.end && !in.closed {
			in.more.Wait()
		}
		data, end, over := in.waiting, in.end, in.closed
		in.waiting = nil
		in.mu.Unlock()
		switch {
		case end && len(data) == 0: // also of a session that has gone since
			in.writeEnd()
			in.mu.Lock()
			in.ended = !in.tty
			in.mu.Unlock()
			return
		case over:
			return
		}
		if !broken { // a command that reads no more does not stop its person
			_, err := in.to.Write(data)
			broken = err != nil
		}
		in.mu.Lock()
		in.unacked -= len(data)
		in.mu.Unlock()
		if in.ack.write(FrameTaken, binary.BigEndian.AppendUint32(nil, uint32(len(data)))) != nil {
			return
		}
	}
}

// writeEnd tells the command of the end of its input. At a terminal that is Ctrl-D, which
// a program may take as it wants.
func (in *input) writeEnd() {
	if in.tty {
		_, _ = in.to.Write([]byte{4})
		return
	}
	_ = in.to.Close()
}
