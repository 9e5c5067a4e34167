package shim

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// ownCommand are the standard streams of the member's own command. Its output goes into the
// log, and sessions that are attached follow the log: none of them can stop the command.
type ownCommand struct {
	folder  Folder
	log     *output
	streams *streams
	tty     bool
	input   bool // sessions send the input

	mu      sync.Mutex
	size    int64         // of the output so far
	exit    *Exit         // of the command, once its last output is in the log
	changed chan struct{} // closed with the next change of size or exit
	over    chan struct{} // closed where exit is set
	held    bool          // a session has the input
	ended   bool          // the input has
}

// firstWindow is the size of a terminal before a person's first.
var firstWindow = Window{Rows: 24, Columns: 80}

// openOwn opens the streams that a spec asks for.
func openOwn(s Spec, f Folder, log *output) (*ownCommand, error) {
	o := &ownCommand{folder: f, log: log, tty: s.TTY, input: s.Stdin, changed: make(chan struct{}), over: make(chan struct{})}
	if s.TTY && s.Container != nil { // its terminal comes from the container
		var err error
		o.streams, err = nullStreams()
		return o, err
	}
	if s.TTY {
		var err error
		o.streams, err = openStreams(Exec{TTY: true, Window: firstWindow}, s.User)
		if err == nil && !s.Stdin {
			o.streams.in = nil
		}
		return o, err
	}
	in, person, err := openInput(s.Stdin)
	if err != nil {
		return nil, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		closeAll([]*os.File{in, person})
		return nil, err
	}
	// Both streams are one, as in a log.
	o.streams = &streams{in: person, out: []*outlet{{FrameOutput, reader}}, command: ends{[]*os.File{in, writer, writer}, []*os.File{in, writer}}}
	return o, nil
}

// setTerminal is called before anything reads or writes the streams.
func (o *ownCommand) setTerminal(person *os.File) {
	o.streams.setTerminal(person)
	if !o.input {
		o.streams.in = nil
	}
}

// close closes the supervisor's ends.
func (o *ownCommand) close() { o.streams.close() }

// copy writes the output into the log until its end. A full disk must not stop the command:
// the rest of its output is dropped then.
func (o *ownCommand) copy() {
	from := o.streams.out[0].from
	if _, err := io.Copy(o, from); err != nil { // of a terminal EIO: nobody has it open
		_, _ = io.Copy(io.Discard, from)
	}
}

// Write implements io.Writer for copy.
func (o *ownCommand) Write(p []byte) (int, error) {
	n, err := o.log.Write(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size += int64(n)
	o.wake()
	return n, err
}

// wake has sessions look again. The caller has the lock.
func (o *ownCommand) wake() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// end has sessions hand on the rest of the output, and the exit.
func (o *ownCommand) end(e Exit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.exit = &e
	close(o.over)
	o.wake()
}

// now is the state of the output, and the channel that its next change closes.
func (o *ownCommand) now() (size int64, exit *Exit, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size, o.exit, o.changed
}

// takeInput gives the input to a session, or says why not.
func (o *ownCommand) takeInput() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.streams.in == nil || o.ended:
		return errors.New(answerDeaf)
	case o.held:
		return errors.New(answerHeld)
	}
	o.held = true
	return nil
}

func (o *ownCommand) giveInput() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held = false
}

// begin is the offset in the output at which a session begins.
func (o *ownCommand) begin(e Exec) int64 {
	size, _, _ := o.now()
	if e.From != nil {
		return min(*e.From, size)
	}
	return size
}

// attach hands the command's output from an offset on to a session, and the session's input
// to the command, until the end of either. exit is how the command has ended, where over is
// true.
func (s *sessions) attach(c net.Conn, to *frameWriter, e Exec, begin int64) (exit Exit, over bool) {
	o := s.own
	std := &streams{}
	signal := func(syscall.Signal) {} // without the input the session only looks on
	if e.Input {
		std.in = o.streams.in
		signal = func(n syscall.Signal) {
			select {
			case s.requests <- request{Signal: int(n)}:
			case <-o.over:
			}
		}
	}
	if e.Input || o.streams.in == nil {
		std.terminal = o.streams.terminal
	}
	if std.terminal != nil {
		_ = repaint(std.terminal, e.Window, e.From == nil)
	}
	input := newInput(std.in, o.tty, to)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		input.read(c, std, signal)
	}()
	exit, over = o.follow(to, begin, gone)
	_ = c.SetReadDeadline(time.Now())
	<-gone
	if input.detach() {
		o.mu.Lock()
		o.ended = true
		o.mu.Unlock()
	}
	return exit, over
}

// follow hands on the output from an offset, until the command has ended or the session has
// gone.
func (o *ownCommand) follow(to *frameWriter, at int64, gone <-chan struct{}) (exit Exit, over bool) {
	piece := make([]byte, MaxFrame)
	for {
		size, ended, changed := o.now()
		for at < size {
			begin, n, err := o.folder.ReadLog(at, piece)
			if err == nil && n == 0 { // lost on a full disk
				at = size
				continue
			}
			if err != nil || to.write(FrameOutput, piece[:n]) != nil {
				return Exit{}, false
			}
			at = begin + int64(n)
		}
		if ended != nil {
			return *ended, true
		}
		select {
		case <-changed:
		case <-gone:
			return Exit{}, false
		}
	}
}
