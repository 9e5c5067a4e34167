package cli

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// mostLine is the length from which a line is printed in parts, in bytes.
const mostLine = 64 << 10

// logPrinter prints the output of a job's members. Of several members it prints whole
// lines, each with the index of its member, as srun --label does.
type logPrinter struct {
	a       *app
	to      io.Writer
	width   int // of the index; 0 prints no index
	members map[int32]*memberLog
}

// memberLog is the state of one member's output.
type memberLog struct {
	transaction resource.TxID
	next        int64  // the offset behind what has come
	line        []byte // that has no end yet
}

// newLogPrinter returns a printer for the output of so many members. A terminal gets the
// output without the characters that a terminal obeys; anything else gets its bytes.
func (a *app) newLogPrinter(members int) *logPrinter {
	p := &logPrinter{a: a, to: a.Stdout, members: map[int32]*memberLog{}}
	if v, is := a.Stdout.(*visible); is && !isTerminal(v) {
		p.to = v.raw()
	}
	if members > 1 {
		p.width = len(strconv.Itoa(members - 1))
	}
	return p
}

// print prints a piece of output; what is missing is said on standard error.
func (p *logPrinter) print(piece *api.LogChunk) error {
	if piece.Message != "" {
		p.a.notef("muster: %s\n", piece.Message)
		return nil
	}
	data, err := piece.Bytes()
	if err != nil {
		return fmt.Errorf("output of member %d: %w", piece.Member, err)
	}
	m := p.members[piece.Member]
	switch {
	case m == nil:
		m = &memberLog{transaction: piece.Transaction}
		p.members[piece.Member] = m
	case m.transaction != piece.Transaction:
		p.end(piece.Member)
		p.a.notef("muster: member %d was started anew on node %s\n", piece.Member, piece.Node)
		*m = memberLog{transaction: piece.Transaction}
	}
	if piece.Offset > m.next {
		p.end(piece.Member)
		p.a.notef("muster: %d bytes of output of member %d are kept no more\n", piece.Offset-m.next, piece.Member)
	}
	m.next = piece.Offset + int64(len(data))
	if p.width == 0 {
		return p.write(data)
	}
	return p.lines(piece.Member, m, data)
}

// lines prints the lines that end in data, and keeps the rest.
func (p *logPrinter) lines(member int32, m *memberLog, data []byte) error {
	for {
		at := bytes.IndexByte(data, '\n')
		if at < 0 {
			break
		}
		line := append(m.line, data[:at+1]...)
		m.line, data = nil, data[at+1:]
		if err := p.line(member, line); err != nil {
			return err
		}
	}
	if m.line = append(m.line, data...); len(m.line) >= mostLine {
		line := append(m.line, '\n')
		m.line = nil
		return p.line(member, line)
	}
	return nil
}

func (p *logPrinter) line(member int32, line []byte) error {
	return p.write(append(fmt.Appendf(nil, "%*d: ", p.width, member), line...))
}

// end prints the line that a member has begun.
func (p *logPrinter) end(member int32) {
	if m := p.members[member]; m != nil && len(m.line) > 0 {
		_ = p.line(member, append(m.line, '\n')) // the stream itself keeps its failure
		m.line = nil
	}
}

// flush prints the lines that have no end.
func (p *logPrinter) flush() {
	for member := range int32(len(p.members)) {
		p.end(member)
	}
	for member := range p.members { // those of a job whose first members had no output
		p.end(member)
	}
}

func (p *logPrinter) write(data []byte) error {
	if isTerminal(p.to) { // a progress bar returns to the beginning of its line
		data = bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	}
	_, err := p.to.Write(data)
	return err
}
